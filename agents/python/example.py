#!/usr/bin/env python3
"""An agent that writes every object into a file of JSON, and removes the file with the object.

    example.py --bus 127.0.0.1:7400 --agent edge-1 --label zone=a --kind demo.v1.NetworkPolicy \
        --state edge-1.db --directory policies
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from nimbus_agent import Decoder, command


class Files:
    """One file for each object. What cannot be written is an exception that the agent reports and tries again."""

    def __init__(self, directory, decoder):
        self._directory = Path(directory)
        self._decoder = decoder

    def connected(self):
        self._decoder.forget()

    def apply(self, item):
        spec = self._decoder.decode(item.spec)
        content = {
            "kind": item.key.kind,
            "namespace": item.key.namespace,
            "name": item.key.name,
            "uid": item.uid,
            "generation": item.generation,
            "labels": dict(item.object.labels),
            **({"spec_hex": item.spec.value.hex()} if spec is None else {"spec": spec}),
        }
        self._replace(self._path(item.key), json.dumps(content, indent=2, sort_keys=True) + "\n")

    def remove(self, key, applied):
        with contextlib.suppress(FileNotFoundError):
            self._path(key).unlink()

    def _path(self, key):
        # No name has a comma in it. So no part is "." or "..", which are names, too.
        return self._directory.joinpath(*(f"{part}," for part in key[:2] if part), f"{key.name}.json")

    def _replace(self, path, content):
        """Whoever reads the file sees the old content or the new one, never a part."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=",")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise


def main():
    parser = command.parser(__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True, help="where the files go")
    arguments = parser.parse_args()
    command.run(arguments, Files(arguments.directory, Decoder(arguments.bus)))


if __name__ == "__main__":
    main()
