"""Frames, as short as they can be written."""

import hashlib

from nimbus_agent import wire
from nimbus_agent.item import Item
from nimbus_agent.key import Key

KIND = "demo.v1.Thing"
EPOCH, SCOPE = 11, 22


def key(name):
    return Key(KIND, "", name)


def digest(name, content=""):
    """As the bus does it: the first byte depends on the name only."""
    bucket = hashlib.sha256(name.encode()).digest()[:1]
    return bucket + hashlib.sha256(f"{name} {content}".encode()).digest()[1:16]


def thing(name, content="", refs=(), uid="", weak=(), manager="controller", generation=1):
    made = wire.Object(kind=KIND, name=name, uid=uid or f"{name}-uid", generation=generation, manager=manager)
    made.spec.type_url, made.spec.value = f"type.googleapis.com/{KIND}", content.encode()
    for other in refs:
        made.refs.add(kind=KIND, name=other)
    for other in weak:
        made.refs.add(kind=KIND, name=other, weak=True)
    return made


def item(name, content="", **fields):
    return Item(thing(name, content, **fields), digest(name, content))


def batch(*events, revision=0):
    """A put is the name or (name, content), a delete is "-name"."""
    made = wire.Batch(revision=revision)
    for event in events:
        name, content = (event, "") if isinstance(event, str) else event
        added = made.events.add()
        if name.startswith("-"):
            added.delete.kind, added.delete.name = KIND, name[1:]
        else:
            added.put.CopyFrom(thing(name, content))
            added.digest = digest(name, content)
    return made


def root(*names):
    """The digest of a set, written in another way than in the agent."""
    made = bytes(16)
    for name in names:
        each = digest(*((name,) if isinstance(name, str) else name))
        made = bytes(a ^ b for a, b in zip(made, each))
    return made


def welcome(mode=4, epoch=EPOCH, scope=SCOPE, revision=0):
    made = wire.Frame().welcome
    made.mode = mode
    made.position.epoch, made.position.scope, made.position.revision = epoch, scope, revision
    return made


def snapshot_begin(*names):
    """Of the buckets of these names; of all if there are none."""
    made = wire.Frame().snapshot_begin
    if names:
        bits = bytearray(32)
        for name in names:
            bucket = digest(name)[0]
            bits[bucket // 8] |= 1 << bucket % 8
        made.buckets = bytes(bits)
    return made


def snapshot_end(revision, *names):
    return _proof(wire.Frame().snapshot_end, revision, names)


def bookmark(revision, *names):
    return _proof(wire.Frame().bookmark, revision, names)


def _proof(made, revision, names):
    made.revision, made.objects, made.digest = revision, len(names), root(*names)
    return made
