"""An agent for a nimbus bus: it mirrors what is meant for it, has a handler make it true, and reports how that went."""

from .agent import Agent, Scope
from .decoder import Decoder
from .item import Item
from .key import Key
from .runner import Failure

__all__ = ["Agent", "Decoder", "Failure", "Item", "Key", "Scope"]
