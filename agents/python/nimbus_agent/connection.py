"""One subscription: a channel, a stream of frames, and the reports that go with it."""

import threading
import time

import grpc

from . import wire
from .refusal import Refusal

# Frames that were read and not looked at yet. When it is full, the reader stops reading and the transport's flow
# control stops the bus, which then sends larger groups and no queue.
_AHEAD = 32
_REPORT_TIMEOUT = 30.0
_OPTIONS = (
    # Channels to the same address share connections, and with them the waiting time after a failure that grpcio keeps
    # by itself. When to try again is decided here only.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
)


class Connection:
    """Puts `(self, what, value)` into the inbox: a frame, the refusal that ended the stream, the answer to a report."""

    def __init__(self, address, request, inbox, first_frame_within):
        self._inbox = inbox
        self._slots = threading.Semaphore(_AHEAD)
        self._closed = False
        self._patience = first_frame_within
        self._heard = time.monotonic()
        self.reporting = False
        self._metadata = (("nimbus-identity", request.agent),) if request.agent else ()
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._stream = wire.subscribe(self._channel)(request, metadata=self._metadata)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        refusal = Refusal(grpc.StatusCode.UNAVAILABLE, "the stream has ended")
        try:
            for frame in self._stream:
                self._slots.acquire()
                if self._closed:
                    return
                self._heard = time.monotonic()
                self._inbox.put((self, "frame", frame))
        except grpc.RpcError as error:
            refusal = Refusal.of(error)
        self._inbox.put((self, "ended", refusal))

    def taken(self):
        """A frame has been looked at."""
        self._slots.release()

    def bookmark_interval(self, milliseconds):
        if milliseconds:
            self._patience = 3 * milliseconds / 1000

    def dead_at(self):
        """When the stream is dead unless a frame comes. Counted from when the last one arrived, not from when it was
        looked at: an agent that is busy for long must not take that for silence."""
        return self._heard + self._patience

    def report(self, request):
        """One at a time: the next one says all that has happened meanwhile."""
        self.reporting = True
        call = wire.report_once(self._channel).future(request, timeout=_REPORT_TIMEOUT, metadata=self._metadata)
        call.add_done_callback(self._reported)

    def _reported(self, call):
        if call.cancelled():
            return
        error = call.exception()
        value = Refusal.of(error) if error else call.result()
        self._inbox.put((self, "refused" if error else "reported", value))

    def close(self):
        self._closed = True
        self._slots.release()
        self._stream.cancel()
        self._channel.close()
