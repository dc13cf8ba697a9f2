"""Has the handler make true what the replica holds: in the order of references, one thing at a time, again if it fails."""

import errno
import heapq
from collections import deque
from dataclasses import dataclass

from . import wire
from .backoff import Backoff
from .resolver import Applied

RETRY_BASE, RETRY_CAP = 0.5, 60.0


class Failure(Exception):
    """What a handler raises to say what went wrong. Anything else that it raises is a failure that may pass."""

    def __init__(self, code, message, retryable=True):
        super().__init__(message)
        self.code, self.retryable = code, retryable


@dataclass
class Trouble:
    """Why an object is not applied: an exception, as it is reported."""

    generation: int
    phase: int
    code: str
    message: str
    retryable: bool = True
    attempts: int = 0
    since: float = 0.0
    retry_at: float | None = None
    waits_for: tuple = ()


@dataclass
class _Task:
    # Everything up to this revision was applied before the task came.
    floor: int
    backoff: Backoff
    attempts: int = 0
    failed_since: float | None = None
    retry_at: float | None = None
    # It has an exception that speaks of this version, rather than none or one that speaks of the version before.
    tried: bool = False


class Runner:
    """`handler` has `apply(item)` and `remove(key, applied)`. Both may be called again after they succeeded, if the
    process was killed before it could write that down."""

    def __init__(self, handler, resolver, save=lambda key, record: None, tell=lambda *_, **__: None, backoff=None):
        self._handler, self._resolver, self._save, self._tell = handler, resolver, save, tell
        self._backoff = backoff or (lambda: Backoff(RETRY_BASE, RETRY_CAP))
        self._tasks = {}
        self._queue = deque()
        self._retries = []
        self._waiters = {}
        self.exceptions = {}
        # Keys whose exception came, changed or went since the reporter last looked.
        self.touched = set()
        self.changed(resolver.out_of_step(), 0)

    def changed(self, keys, floor):
        """What should be, has changed at these keys."""
        for key in keys:
            task = self._tasks.pop(key, None)
            untried = task is not None and not task.tried
            if self._resolver.pending(key):
                self._tasks[key] = _Task(min(task.floor, floor) if untried else floor, self._backoff())
                self._queue.append(key)
            elif task is not None:
                self._clear(key)
            self._wake(key)

    def rebase(self):
        """A new history: revisions of the old one mean nothing in it."""
        for task in self._tasks.values():
            task.floor = 0

    def applied(self, received, omitted=()):
        """Everything up to this revision is applied, but for the exceptions; those omitted are not reported as such."""
        late = (task.floor for key, task in self._tasks.items() if not task.tried or key in omitted)
        return min([received, *late])

    def next_retry(self):
        """When there is something to do again; None if nobody knows."""
        while self._retries and not self._is_due(*self._retries[0]):
            heapq.heappop(self._retries)
        return self._retries[0][0] if self._retries else None

    def busy(self):
        return bool(self._queue)

    def idle(self):
        """Everything was tried."""
        return all(task.tried for task in self._tasks.values())

    def step(self, now):
        """Does one thing."""
        while (at := self.next_retry()) is not None and at <= now:
            self._queue.append(heapq.heappop(self._retries)[1])
        while self._queue:
            key = self._queue.popleft()
            task = self._tasks.get(key)
            if task is None or (task.retry_at is not None and task.retry_at > now):
                continue
            if blockers := self._resolver.blockers(key):
                self._hold(key, task, blockers, now)
                continue
            self._run(key, task, now)
            return

    def _run(self, key, task, now):
        item = self._resolver.item(key)
        try:
            record = self._resolver.applied(key)
            if record is not None and (item is None or item.uid != record.uid):
                # Another uid is another object with the same name: the old one goes first.
                self._handler.remove(key, record)
                self._done(key, None)
                self._tell("removed", key=str(key), generation=record.generation)
            if item is not None:
                self._handler.apply(item)
                self._done(key, Applied.of(item))
                self._tell("applied", key=str(key), generation=item.generation)
        except Exception as error:  # The handler is not ours: one object that fails must not stop the others.
            self._failed(key, task, item, error, now)
        else:
            del self._tasks[key]
            self._clear(key)
            self._wake(key)

    def _done(self, key, record):
        self._save(key, record)
        self._resolver.done(key, record)

    def _failed(self, key, task, item, error, now):
        task.attempts += 1
        task.tried = True
        task.failed_since = now if task.failed_since is None else task.failed_since
        code, retryable = _describe(error)
        task.retry_at = now + task.backoff.next() if retryable else None
        generation = item.generation if item else self._resolver.applied(key).generation
        self._except(
            key,
            Trouble(
                generation, wire.PHASE_FAILED, code, str(error), retryable, task.attempts, task.failed_since, task.retry_at
            ),
        )
        if task.retry_at is not None:
            heapq.heappush(self._retries, (task.retry_at, key))
        self._tell(
            "failed", key=str(key), generation=generation, code=code, message=str(error), attempts=task.attempts,
            retryable=retryable,
        )
        self._wake(key)

    def _hold(self, key, task, blockers, now):
        for blocker in blockers:
            self._waiters.setdefault(blocker, set()).add(key)
        # What waits only for something that has not been tried yet is no exception, just not its turn.
        if any(blocker in self._tasks and not self._tasks[blocker].tried for blocker in blockers):
            return
        task.tried = True
        old = self.exceptions.get(key)
        waits_for = tuple(sorted(blockers))
        item = self._resolver.item(key)
        generation = item.generation if item else self._resolver.applied(key).generation
        if old and (old.phase, old.generation, old.waits_for) == (wire.PHASE_PENDING, generation, waits_for):
            return
        task.failed_since = task.failed_since or now
        message = "waits for " + ", ".join(map(str, waits_for))
        self._except(
            key,
            Trouble(
                generation, wire.PHASE_PENDING, "WAITS_FOR", message, True, task.attempts, task.failed_since, None, waits_for
            ),
        )
        self._tell("held", key=str(key), generation=generation, waits_for=list(map(str, waits_for)))
        self._wake(key)

    def _wake(self, key):
        """Those that waited for it look again."""
        self._queue.extend(sorted(self._waiters.pop(key, ())))

    def _except(self, key, trouble):
        self.exceptions[key] = trouble
        self.touched.add(key)

    def _clear(self, key):
        if self.exceptions.pop(key, None):
            self.touched.add(key)
            self._tell("cleared", key=str(key))

    def _is_due(self, at, key):
        task = self._tasks.get(key)
        return task is not None and task.retry_at == at


def _describe(error):
    if isinstance(error, Failure):
        return error.code, error.retryable
    if isinstance(error, OSError) and error.errno:
        return errno.errorcode.get(error.errno, "OSError"), error.errno != errno.ENAMETOOLONG
    return type(error).__name__, True
