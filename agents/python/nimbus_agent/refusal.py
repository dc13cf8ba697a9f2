"""What the bus says when it ends a stream or refuses a call."""

import grpc
from google.protobuf.message import DecodeError

from . import wire

# Asking again in the same words gets the same answer.
_HOPELESS = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED}


class Refusal:
    def __init__(self, code, message="", retry_after=None, reason=""):
        self.code = code
        self.message = message
        # Seconds until the bus wants to see the caller again; None if it does not say.
        self.retry_after = retry_after
        self.reason = reason

    @classmethod
    def of(cls, error):
        """Of an error of grpcio, whose details are a google.rpc.Status in the trailing metadata."""
        refusal = cls(error.code(), error.details() or "")
        for name, value in error.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                refusal._read(value)
        return refusal

    def _read(self, value):
        try:
            for detail in wire.Status.FromString(value).details:
                name = detail.type_url.rpartition("/")[2]
                if name == "google.rpc.RetryInfo":
                    delay = wire.RetryInfo.FromString(detail.value).retry_delay
                    self.retry_after = delay.seconds + delay.nanos / 1e9
                elif name == "google.rpc.ErrorInfo":
                    self.reason = wire.ErrorInfo.FromString(detail.value).reason
        except DecodeError:
            pass

    @property
    def superseded(self):
        return self.code == grpc.StatusCode.ABORTED and self.reason == "SUPERSEDED"

    @property
    def hopeless(self):
        return self.code in _HOPELESS

    def __str__(self):
        return f"{self.code.name}: {self.message}"
