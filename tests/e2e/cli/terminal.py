"""Runs a command on a terminal of its own, and does what somebody at it would do.

    terminal.py STEP... -- COMMAND ARGUMENT...

Steps: `expect:TEXT` waits until the text was drawn since the step before, `send:KEYS` types (with escapes as in Python),
`resize:ROWSxCOLUMNS` changes the window, `signal:NUMBER` sends a signal, `run:COMMAND` runs another
command. Then it waits for the end of the command, and prints,
as one line of JSON, how it ended, what it drew, and whether the terminal is as it was before.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

GUARD = 60


def main():
    at = sys.argv.index("--")
    steps, command = sys.argv[1:at], sys.argv[at + 1 :]
    master, slave = pty.openpty()
    resize(master, 24, 100)
    before = termios.tcgetattr(slave)

    def own_terminal():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal)
    drawn, seen = b"", 0
    deadline = time.monotonic() + GUARD

    def read(timeout):
        nonlocal drawn
        ready, _, _ = select.select([master], [], [], timeout)
        if ready:
            drawn += os.read(master, 65536)
        return bool(ready)

    for step in steps:
        what, _, value = step.partition(":")
        if what == "expect":
            wanted = value.encode()
            while wanted not in drawn[seen:]:
                if time.monotonic() > deadline or process.poll() is not None and not read(0):
                    process.kill()
                    sys.exit(f"waited in vain for {value!r} in {drawn[seen:]!r}")
                read(0.05)
            seen = len(drawn)
        elif what == "send":
            os.write(master, value.encode().decode("unicode_escape").encode("latin-1"))
        elif what == "resize":
            rows, columns = value.split("x")
            resize(master, int(rows), int(columns))
            process.send_signal(signal.SIGWINCH)
        elif what == "run":
            subprocess.run(value.split(), check=True)
        elif what == "signal":
            process.send_signal(int(value))
        else:
            sys.exit(f"{step!r} is no step")
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            sys.exit(f"waited in vain for its end after {drawn!r}")
        read(0.05)
    while read(0):
        pass
    restored = termios.tcgetattr(slave) == before
    print(json.dumps({"code": process.returncode, "drawn": drawn.decode(), "restored": restored}))


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


main()
