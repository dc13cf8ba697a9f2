"""The agent: connects, mirrors, has things applied, reports, and comes back when the stream ends."""

import queue
import sys
import time
from dataclasses import dataclass, field

import grpc

from . import wire
from .backoff import Backoff
from .connection import Connection
from .key import Key
from .replica import Replica
from .reporter import Reporter
from .resolver import Resolver
from .runner import Runner
from .store import Store
from .trace import silent

SOFTWARE = "nimbus-agent-python/0.1"
# Until the Welcome says how often bookmarks come.
_FIRST_FRAME = 30.0
# Between two reports: what happens in between goes into one.
_REPORT_EVERY = 0.1
_REPORT_AGAIN = 1.0
_RECONNECT = (0.5, 30.0)
# Two agents under one name end each other's sessions; the more patient they are, the less they do so.
_SUPERSEDED = (20.0, 600.0)


@dataclass
class Scope:
    """What to subscribe to. No kinds means every kind."""

    kinds: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)
    filter: object = None


class Agent:
    """`handler` has `apply(item)` and `remove(key, applied)`, and may have `connected()`. It is called on the thread
    that runs the agent, one call at a time."""

    def __init__(self, address, name, scope, handler, state, tell=silent):
        self._address, self._name, self._scope, self._handler, self._tell = address, name, scope, handler, tell
        self._store = Store(state)
        self._replica = Replica(self._store.held, self._store.position)
        resolver = Resolver(self._replica.held, self._store.applied, self._subscribed)
        self._runner = Runner(handler, resolver, self._store.save_applied, tell)
        self._reporter = Reporter()
        self._backoff, self._superseded = Backoff(*_RECONNECT), Backoff(*_SUPERSEDED)
        # Its put may be called by a signal handler at any moment, unlike that of queue.Queue. Frames in it are
        # bounded by the connection.
        self._inbox = queue.SimpleQueue()
        self._connection = None
        self._epoch = None
        self._report_at = 0.0
        self.mismatches = 0

    def run(self):
        """Until `stop`, or until the bus says that the subscription itself is wrong."""
        tell, position = self._tell, self._replica.position
        tell("started", objects=len(self._replica.held), revision=position.revision if position else None)
        delay = 0.0
        try:
            while self._pause(delay):
                delay = self._session()
                if delay is None:
                    return
                tell("reconnecting", after_ms=round(delay * 1000))
        finally:
            self._store.close()
            tell("stopped")

    def stop(self):
        """Ends `run` when what is being done is done. May be called from a signal handler or another thread."""
        self._inbox.put(None)

    def rescope(self, scope):
        """Another subscription on the running session. Called from the handler only, as everything else is."""
        self._scope = scope
        rescope = wire.Rescope(kinds=scope.kinds, filter=scope.filter, agent_labels=scope.labels)
        self._reporter.rescope(rescope)

    def _subscribed(self, kind):
        return not self._scope.kinds or kind in self._scope.kinds

    # --- between sessions

    def _pause(self, seconds):
        """Works on what is held until the time has come. False: stop."""
        until = time.monotonic() + seconds
        while True:
            message = self._next(until)
            if message is None:
                return False
            if message is not _NOTHING:
                continue
            if time.monotonic() >= until:
                return True

    def _next(self, *deadlines):
        """Does one thing if there is one, and waits for a message until then, or until there is work again."""
        now = time.monotonic()
        self._runner.step(now)
        if self._runner.busy():
            wait = 0.0
        else:
            retry = self._runner.next_retry()
            wait = max(0.0, min([*deadlines, *([retry] if retry is not None else [])]) - time.monotonic())
        try:
            return self._inbox.get(timeout=wait) if wait else self._inbox.get_nowait()
        except queue.Empty:
            return _NOTHING

    # --- one session

    def _session(self):
        """Lives through one subscription; seconds until the next one, or None if there is to be none."""
        self._replica.begin_session()
        request = wire.SubscribeRequest(
            kinds=self._scope.kinds, filter=self._scope.filter, agent=self._name, agent_labels=self._scope.labels,
            resume=self._replica.resume(), software=SOFTWARE,
        )
        self._connection = Connection(self._address, request, self._inbox, _FIRST_FRAME)
        self._connected_at = time.monotonic()
        self._welcomed = self._in_sync_told = False
        try:
            return self._live(self._connection)
        finally:
            self._connection.close()
            self._connection = None

    def _live(self, connection):
        while True:
            self._report(connection)
            message = self._next(connection.dead_at(), *self._next_report(connection))
            if message is None:
                return None
            if message is _NOTHING:
                if time.monotonic() >= connection.dead_at():
                    self._tell("silent")
                    return self._backoff.next()
                continue
            sender, what, value = message
            if sender is not connection:
                continue
            if what == "ended":
                return self._ended(value)
            if what == "frame":
                connection.taken()
                delay = self._frame(connection, value)
                if delay is not None:
                    return delay
            else:
                self._answered(connection, what, value)

    def _ended(self, refusal):
        """How long to stay away, by what the bus said."""
        self._tell("disconnected", code=refusal.code.name, reason=refusal.reason, message=refusal.message)
        if refusal.hopeless:
            raise SystemExit(f"the bus refuses the subscription: {refusal}")
        if refusal.superseded:
            print(f"another process runs as agent {self._name}: {refusal.message}", file=sys.stderr, flush=True)
            self._reporter.event("Superseded", "another process subscribed under this name", time.monotonic())
            if time.monotonic() - self._connected_at > _SUPERSEDED[1]:
                self._superseded.reset()
            # Never at once, which full jitter alone would allow: the other one would be sent away in turn.
            return _SUPERSEDED[0] / 2 + self._superseded.next()
        if refusal.retry_after is not None:
            return refusal.retry_after
        return self._backoff.next()

    def _frame(self, connection, frame):
        """Obeys a frame. Seconds to stay away if the session is over."""
        what = frame.WhichOneof("frame")
        body = getattr(frame, what) if what else None
        floor = self._replica.received
        if what == "welcome":
            self._welcome(connection, body)
        elif what == "snapshot_begin":
            self._tell("snapshot_begin", objects=body.objects, buckets=_count(body.buckets))
            self._follow(self._replica.snapshot_begin(body), floor)
        elif what == "batch":
            if body.events:
                puts = [str(Key.of(event.put)) for event in body.events if event.HasField("put")]
                deletes = [str(Key.of(event.delete)) for event in body.events if event.HasField("delete")]
                self._tell("batch", puts=puts, deletes=deletes, revision=body.revision)
            self._follow(self._replica.batch(body), floor)
        elif what in ("snapshot_end", "bookmark"):
            step = getattr(self._replica, what)(body)
            if what == "snapshot_end":
                swept = [str(key) for key, item in step.changes.items() if item is None]
                self._tell("snapshot_end", revision=body.revision, swept=swept)
            self._follow(step, floor)
            if step.mismatch:
                return self._mismatch(step.mismatch)
            self._backoff.reset()
            if step.changes or step.moved or not self._in_sync_told:
                self._in_sync_told = True
                self._tell("in_sync", revision=body.revision, digest=body.digest.hex(), objects=body.objects)
        elif what == "notice":
            return self._notice(body)
        return None

    def _welcome(self, connection, welcome):
        self._replica.welcome(welcome)
        connection.bookmark_interval(welcome.bookmark_interval_ms)
        if self._epoch != welcome.position.epoch:
            self._epoch = welcome.position.epoch
            self._runner.rebase()
        if not self._welcomed:
            self._welcomed = True
            self._reporter.begin(welcome.session)
            if hasattr(self._handler, "connected"):
                self._handler.connected()
        self._tell(
            "connected", mode=wire.mode_name(welcome.mode), reason=welcome.reason, session=f"{welcome.session:016x}",
            epoch=f"{welcome.position.epoch:016x}", revision=welcome.position.revision,
            incomplete_kinds=list(welcome.incomplete_kinds),
        )

    def _notice(self, notice):
        what = notice.WhichOneof("notice")
        if what == "drain":
            self._tell("drain", retry_after_ms=notice.drain.retry_after_ms, reason=notice.drain.reason)
            return notice.drain.retry_after_ms / 1000
        if what == "scope_changed":
            self._replica.scope_changed(notice.scope_changed.scope)
            self._tell("scope_changed", scope=f"{notice.scope_changed.scope:016x}")
        elif what == "report_wanted":
            self._reporter.want_full()
        elif what == "group_restarted":
            self._replica.group_restarted()
            self._tell("group_restarted")
        return None

    def _follow(self, step, floor):
        """Writes down what changed before anything acts on it."""
        if step.changes or step.moved:
            self._store.save(step.changes, self._replica.position)
        self._runner.changed(step.changes, floor)

    def _mismatch(self, message):
        self.mismatches += 1
        self._tell("mismatch", message=message, count=self.mismatches)
        print(f"digest mismatch: {message}", file=sys.stderr, flush=True)
        self._reporter.event("DigestMismatch", message, time.monotonic())
        return self._backoff.next()

    # --- reports

    def _next_report(self, connection):
        waiting = self._welcomed and not connection.reporting
        return [self._report_at] if waiting and self._reporter.news(self._watermarks(), self._runner.touched) else []

    def _watermarks(self):
        received = self._replica.received
        omitted = self._reporter.omitted(self._runner.exceptions)
        return received, self._runner.applied(received, omitted), self._replica.scope_changes

    def _report(self, connection):
        now = time.monotonic()
        if not self._welcomed or connection.reporting or now < self._report_at:
            return
        report = self._reporter.build(now, self._watermarks(), self._runner.exceptions, self._runner.touched)
        if report is None:
            return
        self._report_at = now + _REPORT_EVERY
        connection.report(report)
        self._tell(
            "report", sequence=report.sequence, full=report.full, received=report.received, applied=report.applied,
            exceptions=[str(Key.of(each.key)) for each in report.exceptions],
            cleared=[str(Key.of(each)) for each in report.cleared],
        )

    def _answered(self, connection, what, value):
        connection.reporting = False
        if what == "reported":
            if value.full_wanted:
                self._reporter.want_full()
            return
        self._tell("report_refused", code=value.code.name, message=value.message)
        if value.code == grpc.StatusCode.RESOURCE_EXHAUSTED and self._runner.exceptions:
            self._reporter.too_many(self._runner.exceptions)
        else:
            self._reporter.lost()
        self._report_at = time.monotonic() + (value.retry_after or _REPORT_AGAIN)


_NOTHING = object()


def _count(bitmap):
    """How many buckets a snapshot covers; None if it covers all."""
    return int.from_bytes(bitmap, "little").bit_count() if bitmap else None
