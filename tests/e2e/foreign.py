"""A client that knows nothing of nimbus but what reflection tells it.

foreign.py NIMBUS SCENARIO: starts the server NIMBUS as often as the scenario needs it, prints `ok: ...` for everything
that was seen, and fails otherwise.
"""

import faulthandler
import os
import queue
import subprocess
import sys
import tempfile

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status
from grpc_tools import protoc

KIND = "demo.v1.NetworkPolicy"
PROTO = "demo/v1/network_policy.proto"
# No call takes as long; it only keeps a failing test from hanging.
GUARD = 60
# Idle subscribers are told quickly that they have everything.
QUICK = ("--bookmark-interval", "0.05")

nimbus = ""
# Closed at the end: a channel that is still open can keep the interpreter from ending.
channels = []


def main():
    global nimbus
    nimbus, scenario = sys.argv[1:]
    # Also what has no timeout of its own ends, and says where it was.
    faulthandler.dump_traceback_later(2 * GUARD, exit=True)
    SCENARIOS[scenario]()
    for channel in channels:
        channel.close()
    faulthandler.cancel_dump_traceback_later()


def check(holds, what, found=None):
    if not holds:
        raise AssertionError(f"{what}: found {found!r}")
    print(f"ok: {what}", flush=True)


class Server:
    """`nimbus serve` as a process, killed at the end."""

    def __init__(self, *flags):
        command = [nimbus, "serve", "--store", "memory", "--admin", "none", "--listen", "127.0.0.1:0", *flags]
        environment = {**os.environ, "NIMBUS_LOG": "warn"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.address = line.split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Client:
    """Calls by name; every message type comes from the server."""

    def __init__(self, server):
        self.channel = grpc.insecure_channel(server.address)
        channels.append(self.channel)
        grpc.channel_ready_future(self.channel).result(timeout=GUARD)
        self.learn()

    def learn(self):
        """Asks again what there is."""
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = DescriptorPool(self.database)

    def message(self, name, /, **fields):
        made = message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))()
        return json_format.ParseDict(fields, made, descriptor_pool=self.pool)

    def method(self, path):
        service, name = path.split("/")
        method = self.pool.FindServiceByName(service).methods_by_name[name]
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        kinds = {
            (False, False): self.channel.unary_unary,
            (False, True): self.channel.unary_stream,
            (True, False): self.channel.stream_unary,
        }
        call = kinds[method.client_streaming, method.server_streaming](
            f"/{path}", request_serializer=request.SerializeToString, response_deserializer=response.FromString
        )
        return call, method.input_type.full_name

    def call(self, path, /, **fields):
        call, request = self.method(path)
        return call(self.message(request, **fields), timeout=GUARD)

    def register(self):
        descriptor_set = compile_kinds()
        call, request = self.method("nimbus.v1.Publisher/RegisterKinds")
        message = self.message(request)
        message.descriptor_set = descriptor_set
        kinds = list(call(message, timeout=GUARD).kinds)
        self.learn()
        return kinds

    def publish(self, publisher, *objects):
        ops = [{"upsert": each} for each in objects]
        return self.call("nimbus.v1.Publisher/Apply", publisher=publisher, ops=ops)

    def sync(self, publisher, *objects):
        steps = Sync(self, publisher)
        steps.items(*objects)
        return steps.end()

    def subscribe(self, **fields):
        return Subscription(self, self.call("nimbus.v1.Bus/Subscribe", **fields))

    def spec(self, item):
        return json_format.MessageToDict(item.spec, descriptor_pool=self.pool)


class Sync:
    """A sync that goes on for as long as the scenario wants."""

    def __init__(self, client, publisher):
        self.client = client
        self.steps = queue.Queue()
        call, self.request = client.method("nimbus.v1.Publisher/Sync")
        self.response = call.future(iter(self.steps.get, None), timeout=GUARD)
        self.send(begin={"publisher": publisher, "kinds": [KIND]})

    def send(self, **step):
        self.steps.put(self.client.message(self.request, **step))

    def items(self, *objects):
        self.send(items={"objects": list(objects)})

    def end(self):
        self.send(end={})
        self.steps.put(None)
        return self.response.result(timeout=GUARD)


class Subscription:
    """A stream of frames, and what a reader holds that obeys them."""

    def __init__(self, client, stream, held=None):
        self.client = client
        self.stream = stream
        self.held = dict(held or {})
        self.unseen = None
        self.position = None
        self.removals = []

    def next(self):
        frame = next(self.stream)
        kind = frame.WhichOneof("frame")
        body = getattr(frame, kind)
        if kind == "welcome":
            self.position = body.position
        elif kind == "snapshot_begin":
            covers = (lambda bucket: body.buckets[bucket // 8] >> bucket % 8 & 1) if body.buckets else (lambda _: True)
            self.unseen = {key for key, (_, digest) in self.held.items() if covers(digest[0])}
        elif kind == "batch":
            for event in body.events:
                self.take(event)
            if body.revision:
                self.position.revision = body.revision
        elif kind == "snapshot_end":
            for key in self.unseen:
                self.remove(key)
            self.unseen = None
            self.position.revision = body.revision
            assert body.digest == self.root(), "the digest proves what is held"
        elif kind == "bookmark":
            self.position.revision = body.revision
            assert (body.digest, body.objects) == (self.root(), len(self.held)), "the digest proves what is held"
        return kind, body

    def take(self, event):
        if event.WhichOneof("change") == "put":
            key = (event.put.kind, event.put.namespace, event.put.name)
            self.held[key] = (event.put, event.digest)
            if self.unseen is not None:
                self.unseen.discard(key)
        else:
            self.remove((event.delete.kind, event.delete.namespace, event.delete.name))

    def remove(self, key):
        if self.held.pop(key, None):
            self.removals.append(key[2])

    def until(self, wanted):
        """Reads up to a frame of that sort; what came, with the changes in it."""
        kinds, names = [], []
        while not kinds or kinds[-1] != wanted:
            kind, body = self.next()
            kinds.append(kind)
            if kind == "batch":
                names += [getattr(event, event.WhichOneof("change")).name for event in body.events]
        return kinds, names, body

    def root(self):
        root = bytes(16)
        for _, digest in self.held.values():
            root = bytes(a ^ b for a, b in zip(root, digest))
        return root

    def buckets(self):
        buckets = [bytes(16)] * 256
        for _, digest in self.held.values():
            buckets[digest[0]] = bytes(a ^ b for a, b in zip(buckets[digest[0]], digest))
        return b"".join(buckets)

    def specs(self):
        return {key[2]: self.client.spec(item) for key, (item, _) in self.held.items()}

    def cancel(self):
        self.stream.cancel()

    def resumed_by(self, client, digests=False, **fields):
        """Another subscription that holds what this one held."""
        call, request = client.method("nimbus.v1.Bus/Subscribe")
        message = client.message(request, **fields)
        message.resume.position.ParseFromString(self.position.SerializeToString())
        message.resume.root = self.root()
        if digests:
            message.resume.buckets = self.buckets()
        for manager in sorted({item.manager for item, _ in self.held.values()}):
            kinds = sorted({item.kind for item, _ in self.held.values() if item.manager == manager})
            message.resume.origins.add(manager=manager, kinds=kinds)
        return Subscription(client, call(message, timeout=GUARD), self.held)


def compile_kinds():
    """The descriptors of the kinds, by the compiler that users of other languages have."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "proto")
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "kinds.bin")
        code = protoc.main(["protoc", f"-I{folder}", "--include_imports", f"--descriptor_set_out={out}", PROTO])
        assert code == 0, "protoc failed"
        with open(out, "rb") as file:
            return file.read()


def policy(name, zone="a", priority=1):
    return {"name": name, "spec": decoded(zone, priority)}


def decoded(zone="a", priority=1):
    return {"@type": f"type.googleapis.com/{KIND}", "zone": zone, "priority": priority}


def mode(client, welcome):
    return client.pool.FindEnumTypeByName("nimbus.v1.Mode").values_by_number[welcome.mode].name


def refused(call):
    """The error of a call that must fail, with its details."""
    try:
        call()
    except grpc.RpcError as error:
        status = rpc_status.from_call(error)
        details = {each.TypeName(): each for each in status.details} if status else {}
        return error, details
    raise AssertionError("accepted, but a refusal was expected")


def publishes_and_reads():
    with Server("--assume-complete", *QUICK) as server:
        client = Client(server)
        services = set(client.database.get_services())
        wanted = {"nimbus.v1.Bus", "nimbus.v1.Publisher", "grpc.health.v1.Health"}
        check(wanted <= services, "reflection lists the services", services)
        health = client.call("grpc.health.v1.Health/Check", service="nimbus.v1.Publisher")
        check(health.status == 1, "the health service says SERVING", health)

        kinds = client.register()
        check(kinds == [KIND, "demo.v1.NetworkPolicyStatus"], "kinds are registered", kinds)
        response = client.publish("python", policy("web", "a", 10), policy("db", "b", 20))
        check(len(response.outcomes) == 2 and response.revision == 1, "two objects are published at one revision")
        known = {info.kind: info for info in client.call("nimbus.v1.Bus/ListKinds").kinds}
        check(known[KIND].registered and known[KIND].objects == 2, "kinds are listed", known)

        listed = client.call("nimbus.v1.Bus/List", kinds=[KIND])
        specs = {item.name: client.spec(item) for item in listed.objects}
        both = {"web": decoded("a", 10), "db": decoded("b", 20)}
        check(specs == both, "a list has decoded specs", specs)
        zone = client.call("nimbus.v1.Bus/List", kinds=[KIND], filter={"fields": ["spec.zone=b"]})
        check([item.name for item in zone.objects] == ["db"], "a filter looks into specs", zone)
        got = client.call("nimbus.v1.Bus/Get", kind=KIND, name="web").object
        check(client.spec(got) == both["web"] and got.manager == "python", "an object is read by name", got)

        reader = client.subscribe(kinds=[KIND], agent="python-agent")
        kinds, _, _ = reader.until("snapshot_end")
        check(kinds == ["welcome", "snapshot_begin", "batch", "snapshot_end"], "a snapshot has its frames", kinds)
        check(reader.specs() == both, "a snapshot has decoded specs", reader.specs())
        client.publish("python", policy("web", "c", 11))
        reader.until("batch")
        check(reader.specs()["web"] == decoded("c", 11), "a change arrives with a decoded spec", reader.specs())
        delete = [{"delete": {"kind": KIND, "name": "db"}}]
        client.call("nimbus.v1.Publisher/Apply", publisher="python", ops=delete)
        reader.until("batch")
        check(list(reader.specs()) == ["web"], "a delete arrives", reader.specs())
        reader.until("bookmark")
        check(True, "a bookmark proves with its digest that nothing is missing")


def resumes_and_is_sent_what_changed():
    with Server(*QUICK) as server:
        client = Client(server)
        client.register()
        client.sync("python", *(policy(f"p{n}") for n in range(100)))
        before = client.subscribe(kinds=[KIND], agent="python-agent")
        before.until("snapshot_end")
        before.cancel()
        client.publish("python", policy("p7", "b"), policy("new"))
        client.publish("python", policy("p7", "c"))
        delete = [{"delete": {"kind": KIND, "name": "p9"}}]
        client.call("nimbus.v1.Publisher/Apply", publisher="python", ops=delete)

        after = before.resumed_by(client, kinds=[KIND], agent="python-agent")
        _, welcome = after.next()
        check(mode(client, welcome) == "MODE_DELTA", "a known position is resumed", welcome)
        kinds, names, _ = after.until("bookmark")
        check(sorted(names) == ["new", "p7", "p9"], "exactly what changed is sent, once", names)
        check(set(kinds) == {"batch", "bookmark"} and after.removals == ["p9"], "and no snapshot", kinds)
        check(after.specs()["p7"]["zone"] == "c" and len(after.held) == 100, "the newest state is held")

        after.cancel()
        again = after.resumed_by(client, kinds=[KIND], agent="python-agent")
        kinds, names, _ = again.until("bookmark")
        check((kinds, names) == (["welcome", "bookmark"], []), "nothing changed: nothing is sent", (kinds, names))


def keeps_everything_while_the_bus_is_refilled():
    objects = [policy(f"p{n}") for n in range(20)]
    scope = {"kinds": [KIND], "agent": "python-agent"}
    with Server(*QUICK) as server:
        client = Client(server)
        client.register()
        client.sync("python", *objects)
        before = client.subscribe(**scope)
        before.until("snapshot_end")
        check(len(before.held) == 20, "everything is held")

    with Server(*QUICK) as server:
        client = Client(server)
        after = before.resumed_by(client, **scope)
        _, welcome = after.next()
        check(mode(client, welcome) == "MODE_WAITING", "a restarted bus that is empty lets wait", welcome)
        watcher = client.subscribe(kinds=[KIND])
        client.register()
        half = Sync(client, "python")
        half.items(*objects[:10])
        while len(watcher.held) < 10:
            watcher.next()
        for _ in range(3):
            kind, body = after.next()
            lives = kind == "batch" and not body.events and body.revision == 0
            check(lives, "it still waits while the publisher is half-way", (kind, body))
        half.items(*objects[10:])
        response = half.end()
        check(response.created == 20 and response.deleted == 0, "the sync has refilled the bus", response)
        seen = []
        while not seen or seen[-1][0] != "bookmark":
            seen.append(after.next())
        modes = [mode(client, body) for kind, body in seen if kind == "welcome"]
        check(modes[-1] == "MODE_UNCHANGED" and set(modes[:-1]) <= {"MODE_WAITING"}, "the digest is equal", modes)
        frames = [kind for kind, body in seen if kind != "welcome" and not (kind == "batch" and not body.events)]
        check(frames == ["bookmark"], "no object is sent again", frames)
        check(after.removals == [] and len(after.held) == 20, "nothing was removed", after.removals)

    with Server(*QUICK) as server:
        client = Client(server)
        client.register()
        changed = [policy("p3", "changed"), policy("new"), *(item for item in objects if item["name"] not in ("p3", "p4"))]
        client.sync("python", *changed)
        third = after.resumed_by(client, digests=True, **scope)
        _, welcome = third.next()
        check(mode(client, welcome) == "MODE_DIGEST", "what differs is found by digests", welcome)
        _, names, _ = third.until("snapshot_end")
        check({"p3", "new"} <= set(names) and len(names) < 19, "only the buckets that differ are sent", names)
        check(third.removals == ["p4"] and len(third.held) == 20, "what is gone is removed, and only that")
        check(third.specs()["p3"]["zone"] == "changed", "what changed has changed")


def syncs_and_sweeps():
    with Server(*QUICK) as server:
        client = Client(server)
        client.register()
        reader = client.subscribe(kinds=[KIND])
        first = client.sync("python", policy("a"), policy("b"), policy("c"))
        check((first.created, first.deleted) == (3, 0), "a first sync creates", first)
        reader.until("snapshot_end")
        check(len(reader.held) == 3, "a snapshot ends when the kind is complete")
        client.publish("somebody", policy("theirs"))
        reader.until("batch")

        unfinished = Sync(client, "python")
        unfinished.items(policy("a"), policy("early"))
        reader.until("batch")
        unfinished.response.cancel()
        listed = client.call("nimbus.v1.Bus/List", kinds=[KIND])
        names = [item.name for item in listed.objects]
        check(names == ["a", "b", "c", "early", "theirs"], "a sync that breaks off deletes nothing", names)

        second = client.sync("python", policy("a"), policy("b", "z"), policy("d"))
        counts = (second.created, second.updated, second.unchanged, second.deleted)
        check(counts == (1, 1, 1, 2), "a second sync changes what differs and sweeps the rest", second)
        while sorted(reader.specs()) != ["a", "b", "d", "theirs"]:
            reader.next()
        check(sorted(reader.removals) == ["c", "early"], "the subscriber sees exactly that", reader.removals)
        third = client.sync("python", policy("a"), policy("b", "z"), policy("d"))
        check(third.unchanged == 3 and third.revision == second.revision, "the same again is no revision", third)
        reader.until("bookmark")


def reads_the_details_of_errors():
    # A snapshot of a few hundred bytes takes minutes at this rate, so that the next one must wait.
    with Server("--snapshot-rate", "1", "--snapshot-burst", "0", *QUICK) as server:
        client = Client(server)
        client.register()
        error, details = refused(lambda: client.publish("python", policy("good"), policy("a b")))
        check(error.code() == grpc.StatusCode.INVALID_ARGUMENT, "a bad name is an invalid argument", error)
        bad = error_details_pb2.BadRequest()
        details["google.rpc.BadRequest"].Unpack(bad)
        violation = bad.field_violations[0]
        check(violation.field == "ops[1].upsert.name", "the details name the field", violation)
        check("1 to 253" in violation.description, "and what was expected", violation)

        client.sync("python", policy("good"))
        ops = [{"upsert": policy("good", "b"), "precondition": {"absent": True}}]
        apply = lambda: client.call("nimbus.v1.Publisher/Apply", publisher="python", ops=ops)
        error, details = refused(apply)
        check(error.code() == grpc.StatusCode.FAILED_PRECONDITION, "a condition that fails says so", error)
        failure = error_details_pb2.PreconditionFailure()
        details["google.rpc.PreconditionFailure"].Unpack(failure)
        violation = failure.violations[0]
        check((violation.type, violation.subject) == ("object", f"{KIND}/good"), "with the object", violation)
        check(violation.description == "expected object absent, found present", "and what was found", violation)
        resource = error_details_pb2.ResourceInfo()
        details["google.rpc.ResourceInfo"].Unpack(resource)
        check(resource.resource_type == KIND, "and its kind", resource)

        first = client.subscribe(kinds=[KIND], agent="first")
        first.until("snapshot_end")
        second = client.subscribe(kinds=[KIND], agent="second")
        error, details = refused(second.next)
        check(error.code() == grpc.StatusCode.UNAVAILABLE, "a snapshot beyond the budget is refused for now", error)
        retry = error_details_pb2.RetryInfo()
        details["google.rpc.RetryInfo"].Unpack(retry)
        check(retry.retry_delay.seconds > 0, "and says when to come back", retry)


def gets_unregistered_kinds_as_bytes():
    with Server("--assume-complete", *QUICK) as server:
        client = Client(server)
        call, request = client.method("nimbus.v1.Publisher/Apply")
        message = client.message(request, publisher="python")
        secret = b"\xff\x00 not even protobuf"
        item = message.ops.add().upsert
        item.name = "thing"
        item.spec.type_url = "type.googleapis.com/other.v1.Thing"
        item.spec.value = secret
        call(message, timeout=GUARD)
        got = client.call("nimbus.v1.Bus/Get", kind="other.v1.Thing", name="thing").object
        check(got.spec.value == secret, "what nobody registered is stored as it came", got)
        reader = client.subscribe(kinds=["other.v1.Thing"])
        reader.until("snapshot_end")
        delivered, _ = reader.held["other.v1.Thing", "", "thing"]
        check(delivered.spec == got.spec, "and delivered as it came", delivered)
        known = {info.kind: info.registered for info in client.call("nimbus.v1.Bus/ListKinds").kinds}
        check(known == {"other.v1.Thing": False}, "and listed as not registered", known)


def is_told_of_a_newer_session():
    with Server(*QUICK) as server:
        client = Client(server)
        client.register()
        client.sync("python", policy("a"))
        first = client.subscribe(kinds=[KIND], agent="python-agent")
        first.until("snapshot_end")
        second = client.subscribe(kinds=[KIND], agent="python-agent")
        second.until("snapshot_end")

        def read_on():
            while True:
                first.next()

        error, details = refused(read_on)
        check(error.code() == grpc.StatusCode.ABORTED, "the older session is aborted", error)
        info = error_details_pb2.ErrorInfo()
        details["google.rpc.ErrorInfo"].Unpack(info)
        check((info.reason, info.domain) == ("SUPERSEDED", "nimbus.v1"), "with the reason", info)
        client.publish("python", policy("b"))
        second.until("batch")
        check(sorted(second.specs()) == ["a", "b"], "the newer session goes on", second.specs())


SCENARIOS = {
    each.__name__: each
    for each in (
        publishes_and_reads,
        resumes_and_is_sent_what_changed,
        keeps_everything_while_the_bus_is_refilled,
        syncs_and_sweeps,
        reads_the_details_of_errors,
        gets_unregistered_kinds_as_bytes,
        is_told_of_a_newer_session,
    )
}

if __name__ == "__main__":
    main()
