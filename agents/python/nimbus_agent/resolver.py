"""What must be done before what. It only looks, and changes nothing but its index."""

from typing import NamedTuple



class Applied(NamedTuple):
    """What the handler has last made true under a key."""

    uid: str
    generation: int
    fingerprint: bytes
    refs: tuple

    @classmethod
    def of(cls, item):
        return cls(item.uid, item.generation, item.fingerprint, item.refs)


class Resolver:
    """`held` is what should be, and belongs to the replica; `applied` is what is."""

    def __init__(self, held, applied, subscribed=lambda kind: True):
        self._held = held
        self._applied = dict(applied)
        self._subscribed = subscribed
        self._referrers = {}
        for key, record in self._applied.items():
            self._index(key, record)

    def item(self, key):
        return self._held.get(key)

    def applied(self, key):
        return self._applied.get(key)

    def out_of_step(self):
        """All that is to be done."""
        return [key for key in (*self._held, *(self._applied.keys() - self._held.keys())) if self.pending(key)]

    def pending(self, key):
        """Whether what is differs from what should be."""
        item, record = self._held.get(key), self._applied.get(key)
        if item is None or record is None:
            return item is not record
        return (item.uid, item.fingerprint) != (record.uid, record.fingerprint)

    def blockers(self, key):
        """What must happen first. A put waits for what it refers to; a removal for those that refer to it and are about
        to stop doing so. Puts never wait for removals, so they do not wait for each other in a circle."""
        item = self._held.get(key)
        if item is not None:
            return [ref for ref in item.refs if ref != key and self._subscribed(ref.kind) and not self._there(ref)]
        return [other for other in self._referrers.get(key, ()) if self._lets_go(other, key)]

    def _there(self, key):
        return key in self._held and not self.pending(key)

    def _lets_go(self, other, key):
        # Who goes on referring to what is gone would be waited for in vain.
        item = self._held.get(other)
        return other != key and self.pending(other) and (item is None or key not in item.refs)

    def done(self, key, record):
        """What is, has changed."""
        old = self._applied.pop(key, None)
        for ref in old.refs if old else ():
            referrers = self._referrers.get(ref, set())
            referrers.discard(key)
            if not referrers:
                self._referrers.pop(ref, None)
        if record is not None:
            self._applied[key] = record
            self._index(key, record)

    def _index(self, key, record):
        for ref in record.refs:
            self._referrers.setdefault(ref, set()).add(key)


