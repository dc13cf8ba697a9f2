"""One object that the agent holds."""

import hashlib

from . import wire
from .key import Key


class Item:
    """An object and the digest that the bus sent with it."""

    __slots__ = ("object", "digest", "key", "refs", "fingerprint")

    def __init__(self, object_, digest):
        self.object = object_
        self.digest = bytes(digest)
        self.key = Key.of(object_)
        # Weak references order nothing and hold nothing back.
        self.refs = tuple(Key.of(ref) for ref in object_.refs if not ref.weak)
        self.fingerprint = _fingerprint(object_)

    @classmethod
    def load(cls, encoded, digest):
        return cls(wire.Object.FromString(encoded), digest)

    def encoded(self):
        return self.object.SerializeToString(deterministic=True)

    @property
    def uid(self):
        return self.object.uid

    @property
    def generation(self):
        return self.object.generation

    @property
    def spec(self):
        return self.object.spec


def _fingerprint(object_):
    """Stands for what a handler acts on. The digest of the bus does not do: it changes with the status, too, and a
    status that somebody writes is no reason to apply the object again."""
    plain = wire.Object()
    plain.CopyFrom(object_)
    for field in ("revision", "status", "observed_generation", "manager"):
        plain.ClearField(field)
    return hashlib.sha256(plain.SerializeToString(deterministic=True)).digest()[:16]
