"""Specs as JSON, through server reflection."""

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


class Decoder:
    """Asks the bus for the descriptor of a kind when it is first needed."""

    def __init__(self, address):
        self._address = address
        self._classes = {}
        self._stale = set()

    def forget(self):
        """Kinds may have been registered anew: asks again for each. What it knew stays good where the bus knows
        nothing, as it does when it was just restarted."""
        self._stale = set(self._classes)

    def decode(self, spec):
        """A spec as a dict; None if the kind is not registered. Raises what grpcio raises if the bus cannot be
        asked, because that says nothing about the kind."""
        kind = spec.type_url.rpartition("/")[2]
        if self._classes.get(kind) is None or kind in self._stale:
            self._classes[kind] = self._ask(kind) or self._classes.get(kind)
            self._stale.discard(kind)
        if self._classes[kind] is None:
            return None
        message_class, pool = self._classes[kind]
        try:
            message = message_class.FromString(spec.value)
            return json_format.MessageToDict(message, descriptor_pool=pool, preserving_proto_field_name=True)
        except (DecodeError, TypeError, json_format.Error):
            return None

    def _ask(self, kind):
        with grpc.insecure_channel(self._address) as channel:
            pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
            try:
                return message_factory.GetMessageClass(pool.FindMessageTypeByName(kind)), pool
            except KeyError:
                return None
