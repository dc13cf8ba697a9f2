"""The messages and methods of the contract, compiled from its proto files when the agent starts.

Server reflection would need no files, but then nothing could be read before a bus answers: an agent must be able to
start, read its state and go on working while there is none.
"""

import os
import tempfile
from pathlib import Path

import grpc_tools
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

_HERE = Path(__file__).resolve().parent
# Whoever installs the package elsewhere brings the contract along and says where it is.
_CONTRACT = Path(os.environ.get("NIMBUS_PROTO") or _HERE.parents[2] / "proto")
_FILES = ("nimbus/v1/bus.proto", "status.proto")


def _compile():
    """A pool of its own: other code in the process may have loaded files of the same names into the default one."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "contract.bin"
        folders = [f"-I{folder}" for folder in (_CONTRACT, _HERE, well_known)]
        code = protoc.main(["protoc", *folders, "--include_imports", f"--descriptor_set_out={out}", *_FILES])
        if code:
            raise ImportError(f"cannot compile {_FILES} in {_CONTRACT} (hint: set NIMBUS_PROTO)")
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_pool = _compile()


def _message(name):
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(name))


Batch = _message("nimbus.v1.Batch")
Event = _message("nimbus.v1.Event")
Filter = _message("nimbus.v1.Filter")
Frame = _message("nimbus.v1.Frame")
Object = _message("nimbus.v1.Object")
ReportRequest = _message("nimbus.v1.ReportRequest")
ReportResponse = _message("nimbus.v1.ReportResponse")
Rescope = _message("nimbus.v1.Rescope")
Resume = _message("nimbus.v1.Resume")
SubscribeRequest = _message("nimbus.v1.SubscribeRequest")
Status = _message("google.rpc.Status")
RetryInfo = _message("google.rpc.RetryInfo")
ErrorInfo = _message("google.rpc.ErrorInfo")

MODE_DELTA, MODE_WAITING = 1, 5
PHASE_PENDING, PHASE_FAILED = 1, 2
_modes = _pool.FindEnumTypeByName("nimbus.v1.Mode").values_by_number


def mode_name(mode):
    """A mode that is newer than this agent reads like the zero value."""
    return _modes.get(mode, _modes[0]).name


def subscribe(channel):
    return channel.unary_stream(
        "/nimbus.v1.Bus/Subscribe", SubscribeRequest.SerializeToString, Frame.FromString
    )


def report_once(channel):
    return channel.unary_unary(
        "/nimbus.v1.Bus/ReportOnce", ReportRequest.SerializeToString, ReportResponse.FromString
    )
