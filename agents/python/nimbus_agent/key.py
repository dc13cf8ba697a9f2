"""The name of an object."""

from typing import NamedTuple


class Key(NamedTuple):
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, message):
        """Of anything that has the three fields: an object, a removal, a reference."""
        return cls(message.kind, message.namespace, message.name)

    def __str__(self):
        return "/".join(part for part in self if part)
