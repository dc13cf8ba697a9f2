"""What the agent holds: a mirror of its feed. It does no I/O, knows no time, and is told every frame in order."""

from dataclasses import dataclass, field
from typing import NamedTuple

from . import wire
from .digests import Digests, covers
from .item import Item
from .key import Key


class Position(NamedTuple):
    epoch: int
    revision: int
    scope: int


@dataclass
class Step:
    """What a frame changed. `in_sync`: the digest of the bus is that of what is held; `mismatch`: it is not."""

    changes: dict = field(default_factory=dict)
    moved: bool = False
    in_sync: bool = False
    mismatch: str = ""


class Replica:
    def __init__(self, held=None, position=None):
        self.held = dict(held or {})
        self.position = position
        self._digests = Digests(item.digest for item in self.held.values())
        self.begin_session()

    def begin_session(self):
        """A new stream. What was staged will come again."""
        self._epoch = self._scope = None
        self._staged = []
        self._unseen = None
        # The watermark of this session. A position of another history or scope says nothing in it.
        self.received = 0
        self.scope_changes = 0

    def resume(self):
        """What to offer to the bus; nothing if nothing is held."""
        if not self.held and self.position is None:
            return None
        resume = wire.Resume(root=self._digests.root(), buckets=self._digests.buckets())
        if self.position is not None:
            resume.position.epoch, resume.position.revision, resume.position.scope = self.position
        origins = {}
        for item in self.held.values():
            origins.setdefault(item.object.manager, set()).add(item.key.kind)
        for manager, kinds in sorted(origins.items()):
            resume.origins.add(manager=manager, kinds=sorted(kinds))
        return resume

    def welcome(self, welcome):
        # The position itself stays as it is: what is held does not change with the answer. If it became that of the
        # Welcome and the stream broke off, the next resume would claim what never arrived.
        self._epoch, self._scope = welcome.position.epoch, welcome.position.scope
        if welcome.mode == wire.MODE_DELTA and self.position is not None:
            self.received = self.position.revision

    def snapshot_begin(self, begin):
        # From here to the end, what is held is that of no revision: neither of the old one nor of the new one.
        self.position = None
        self._staged = []
        self._covered = begin.buckets
        self._see_nothing()
        return Step(moved=True)

    def batch(self, batch):
        if self._unseen is not None:
            # Changes may come while a snapshot is open, but no position before its end.
            return Step(self._take(batch.events))
        self._staged.extend(batch.events)
        if not batch.revision:
            return Step()
        staged, self._staged = self._staged, []
        step = Step(self._take(staged))
        self._move(batch.revision, step)
        return step

    def snapshot_end(self, end):
        step = Step()
        for key in list(self._unseen or ()):
            self._remove(key, step.changes)
        self._unseen = None
        return self._check(end, step)

    def bookmark(self, bookmark):
        return self._check(bookmark, Step())

    def group_restarted(self):
        """What came of the group is forgotten. In a snapshot nothing is taken back: what comes again replaces it, and
        what does not is swept at the end."""
        self._staged = []
        if self._unseen is not None:
            self._see_nothing()

    def scope_changed(self, scope):
        # The position gets the new scope at the end of the next group, not before: until then, what is held is that
        # of the old one.
        self._scope = scope
        self.scope_changes += 1
        self.received = 0

    def _see_nothing(self):
        self._unseen = {key for key, item in self.held.items() if covers(self._covered, item.digest[0])}

    def _move(self, revision, step):
        self.received = revision
        position = Position(self._epoch, revision, self._scope)
        step.moved = step.moved or position != self.position
        self.position = position

    def _check(self, frame, step):
        self._move(frame.revision, step)
        if frame.digest == self._digests.root() and frame.objects == len(self.held):
            step.in_sync = True
            return step
        step.mismatch = (
            f"{len(self.held)} objects with digest {self._digests.root().hex()} are held at revision {frame.revision},"
            f" but there are {frame.objects} with {frame.digest.hex()}"
        )
        # Without a position the bus compares buckets. The sum is made anew in case it was the sum that was wrong.
        self.position, step.moved = None, True
        self._digests = Digests(item.digest for item in self.held.values())
        return step

    def _take(self, events):
        changes = {}
        for event in events:
            change = event.WhichOneof("change")
            if change == "put":
                self._put(Item(event.put, event.digest), changes)
            elif change == "delete":
                self._remove(Key.of(event.delete), changes)
        return changes

    def _put(self, item, changes):
        old = self.held.get(item.key)
        if old:
            self._digests.toggle(old.digest)
        self._digests.toggle(item.digest)
        self.held[item.key] = item
        # What is changed again comes last, so that the order in which things were said stays.
        changes.pop(item.key, None)
        changes[item.key] = item
        if self._unseen is not None:
            self._unseen.discard(item.key)

    def _remove(self, key, changes):
        old = self.held.pop(key, None)
        if old is None:
            return
        self._digests.toggle(old.digest)
        changes.pop(key, None)
        changes[key] = None
        if self._unseen is not None:
            self._unseen.discard(key)
