//! Conversations with a bus.

use std::collections::BTreeSet;

use nimbus_wire::v1::{self, frame::Frame, op::Op, sync_request::Step};
use prost::Message;
use tonic::Code;

use crate::{
    corpus::{Files, named},
    files,
    requests::{self, GOES_ON, PATHS},
    schema,
    script::{self, Part},
};

/// Calls of a script, by the end of their paths.
struct Calls(Vec<(u8, Vec<u8>)>);

impl Calls {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn call(mut self, path: &str, message: &impl Message) -> Self {
        let tag = PATHS.iter().position(|known| known.ends_with(path)).expect("there is such a call");
        self.0.push((u8::try_from(tag).unwrap(), message.encode_to_vec()));
        self
    }

    /// One more message of the call before.
    fn and(mut self, message: &impl Message) -> Self {
        let tag = self.0.last().expect("a call before").0 | GOES_ON;
        self.0.push((tag, message.encode_to_vec()));
        self
    }

    fn write(&self) -> Vec<u8> {
        script::write(self.0.iter().map(|(tag, body)| Part { tag: *tag, body }))
    }

    /// All messages that the last call is answered with.
    fn answers(&self) -> Vec<bytes::Bytes> {
        let (_, mut answers) = requests::runtime().block_on(requests::run(&self.write(), false));
        answers.pop().expect("an answer for each call").messages
    }
}

fn published(object: v1::Object) -> v1::Object {
    v1::Object { uid: String::new(), generation: 0, revision: 0, manager: String::new(), ..object }
}

fn apply(ops: Vec<Op>) -> v1::ApplyRequest {
    let op = |op| v1::Op { op: Some(op), ..v1::Op::default() };
    v1::ApplyRequest {
        publisher: "p".to_owned(),
        ops: ops.into_iter().map(op).collect(),
        ..v1::ApplyRequest::default()
    }
}

fn upserts() -> v1::ApplyRequest {
    apply(files::objects().into_iter().map(published).map(Op::Upsert).collect())
}

fn key(name: &str) -> v1::Key {
    v1::Key { kind: "fuzz.Policy".to_owned(), namespace: String::new(), name: name.to_owned() }
}

fn subscribe() -> v1::SubscribeRequest {
    v1::SubscribeRequest {
        agent: "edge-1".to_owned(),
        agent_labels: [("zone".to_owned(), "a".to_owned())].into(),
        kinds: vec!["fuzz.Policy".to_owned()],
        ..v1::SubscribeRequest::default()
    }
}

/// A bus with objects, and an agent that has them.
fn lively() -> (Calls, u64) {
    let calls = Calls::new().call("/Apply", &upserts()).call("Bus/Subscribe", &subscribe());
    let welcome = v1::Frame::decode(calls.answers()[0].clone()).unwrap();
    let Some(Frame::Welcome(welcome)) = welcome.frame else { panic!("a subscription begins with a welcome") };
    (calls, welcome.session)
}

fn report(session: u64) -> v1::ReportRequest {
    let exception = v1::Exception {
        key: Some(key("web-0")),
        generation: 1,
        phase: v1::Phase::Failed.into(),
        code: "FULL".to_owned(),
        message: "no room".to_owned(),
        ..v1::Exception::default()
    };
    v1::ReportRequest {
        session,
        sequence: 1,
        received: 1,
        applied: 1,
        exceptions: vec![exception],
        ..v1::ReportRequest::default()
    }
}

pub(super) fn scripts() -> Files {
    let target = || Some(v1::Target { target: Some(v1::target::Target::Object(key("web-0"))) });
    let begin =
        v1::SyncBegin { publisher: "q".to_owned(), kinds: vec!["fuzz.Policy".to_owned()], ..v1::SyncBegin::default() };
    let items = v1::SyncItems {
        objects: vec![published(v1::Object { name: "synced".to_owned(), ..files::objects().remove(0) })],
    };
    let step = |step| v1::SyncRequest { step: Some(step) };
    let acquire = v1::AcquireRequest { name: "lease".to_owned(), holder: "h".to_owned(), ttl_ms: 5000 };
    let filter = v1::Filter { selector: "zone=a".to_owned(), names: vec!["web-0".to_owned()], ..v1::Filter::default() };
    let filtered = v1::SubscribeRequest { filter: Some(filter.clone()), ..subscribe() };
    let finalizers = v1::FinalizersWrite { key: Some(key("web-0")), add: vec!["f".to_owned()], remove: Vec::new() };
    let status =
        v1::StatusWrite { key: Some(key("web-0")), status: files::objects().remove(0).spec, observed_generation: 1 };
    let (lively_calls, session) = lively();
    let lively = || Calls(lively_calls.0.clone());
    let scripts = [
        ("apply", Calls::new().call("/Apply", &upserts())),
        ("rehearsal", Calls::new().call("/Apply", &v1::ApplyRequest { dry_run: true, ..upserts() })),
        (
            "life-and-death",
            Calls::new()
                .call("/Apply", &upserts())
                .call("/Apply", &apply(vec![Op::Status(status)]))
                .call("/Apply", &apply(vec![Op::Finalizers(finalizers)]))
                .call("/Apply", &apply(vec![Op::Delete(key("web-0"))]))
                .call(
                    "Bus/Get",
                    &v1::GetRequest { kind: "fuzz.Policy".to_owned(), name: "web-0".to_owned(), ..Default::default() },
                ),
        ),
        (
            "sync",
            Calls::new()
                .call("Publisher/Sync", &step(Step::Begin(begin.clone())))
                .and(&step(Step::Items(items)))
                .and(&step(Step::End(v1::SyncEnd {}))),
        ),
        ("sync-that-breaks-off", Calls::new().call("Publisher/Sync", &step(Step::Begin(begin)))),
        (
            "list",
            Calls::new()
                .call("/Apply", &upserts())
                .call("Bus/List", &v1::ListRequest { page_size: 1, filter: Some(filter), ..Default::default() }),
        ),
        ("list-kinds", Calls::new().call("/Apply", &upserts()).call("Bus/ListKinds", &v1::ListKindsRequest {})),
        ("subscribe", lively()),
        ("subscribe-with-a-filter", Calls::new().call("/Apply", &upserts()).call("Bus/Subscribe", &filtered)),
        ("report", lively().call("Bus/ReportOnce", &report(session))),
        (
            "reports",
            lively()
                .call("Bus/Report", &report(session))
                .and(&v1::ReportRequest { sequence: 2, ..report(session) }),
        ),
        (
            "rescope",
            lively().call(
                "Bus/ReportOnce",
                &v1::ReportRequest {
                    rescope: Some(v1::Rescope { kinds: vec!["fuzz.Other".to_owned()], ..Default::default() }),
                    ..report(session)
                },
            ),
        ),
        (
            "fleet",
            lively()
                .call("Bus/ReportOnce", &report(session))
                .call("Fleet/ListAgents", &v1::ListAgentsRequest { details: true, ..Default::default() })
                .call("Fleet/GetPropagation", &v1::GetPropagationRequest { target: target(), ..Default::default() })
                .call("Fleet/Explain", &v1::ExplainRequest { object: Some(key("web-0")), agent: "edge-1".to_owned() })
                .call("Fleet/WaitFor", &v1::WaitForRequest { target: target(), timeout_ms: 10, ..Default::default() })
                .call("Fleet/WatchStatus", &v1::WatchStatusRequest::default()),
        ),
        (
            "leases",
            Calls::new()
                .call("Leases/Acquire", &acquire)
                .call(
                    "Leases/Renew",
                    &v1::RenewRequest { leases: vec![v1::LeaseToken { name: "lease".to_owned(), token: 17 }] },
                )
                .call("Leases/ListLeases", &v1::ListLeasesRequest::default())
                .call(
                    "Leases/Release",
                    &v1::ReleaseRequest { leases: vec![v1::LeaseToken { name: "lease".to_owned(), token: 17 }] },
                ),
        ),
        (
            "kinds",
            Calls::new()
                .call(
                    "Publisher/RegisterKinds",
                    &v1::RegisterKindsRequest {
                        descriptor_set: schema::compile(&["old.proto"]).into(),
                        ..Default::default()
                    },
                )
                .call("v1.ServerReflection/ServerReflectionInfo", &reflection("fuzz.Old")),
        ),
        (
            "health",
            Calls::new()
                .call("Health/Check", &v1::Key::default())
                .call("Health/Watch", &v1::Key::default()),
        ),
        (
            "old-reflection",
            Calls::new().call("v1alpha.ServerReflection/ServerReflectionInfo", &reflection("nimbus.v1.Bus")),
        ),
        (
            "endless",
            lively().call(
                "Fleet/WaitFor",
                &v1::WaitForRequest { target: target(), timeout_ms: u64::MAX, ..Default::default() },
            ),
        ),
        ("endless-lease", Calls::new().call("Leases/Acquire", &v1::AcquireRequest { ttl_ms: u32::MAX, ..acquire })),
    ];
    let mut files = named(scripts.map(|(name, calls)| (name, calls.write())));
    // Each call with nothing in it.
    let nothing: Vec<Part<'_>> =
        (0..PATHS.len()).map(|tag| Part { tag: u8::try_from(tag).unwrap(), body: &[] }).collect();
    files.insert("nothing-to-everybody".to_owned(), script::write(nothing));
    files
}

/// As `list_services` and `file_containing_symbol` are written: one text in one field.
fn reflection(symbol: &str) -> tonic_reflection_request::Request {
    tonic_reflection_request::Request { symbol: symbol.to_owned() }
}

mod tonic_reflection_request {
    /// What `file_containing_symbol` is called on the wire.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Request {
        #[prost(string, tag = "4")]
        pub(super) symbol: String,
    }
}

/// The calls that at least one script makes so that they are not refused.
pub(super) fn accepted() -> BTreeSet<&'static str> {
    let mut accepted = BTreeSet::new();
    for script in scripts().values() {
        let (_, answers) = requests::runtime().block_on(requests::run(script, false));
        let fine = answers.iter().filter(|answer| match &answer.status {
            Some(status) => status.code() == Code::Ok,
            None => !answer.messages.is_empty(),
        });
        accepted.extend(fine.map(|answer| answer.path));
    }
    accepted
}

/// What subscribers are sent.
pub(super) fn frames() -> Files {
    let observer = v1::SubscribeRequest::default();
    let sent = |calls: &Calls| -> Vec<u8> {
        let frames = calls.answers();
        script::write(frames.iter().map(|frame| Part { tag: 0, body: frame }))
    };
    let snapshot = Calls::new().call("/Apply", &upserts()).call("Bus/Subscribe", &observer);
    let frame = |frame: Frame| v1::Frame { frame: Some(frame) }.encode_to_vec();
    let position = || Some(v1::Position { epoch: 7, revision: 5, scope: 1 });
    let welcome = frame(Frame::Welcome(v1::Welcome { session: 1, position: position(), ..Default::default() }));
    let bookmark =
        frame(Frame::Bookmark(v1::Bookmark { revision: 5, digest: vec![0; 16].into(), ..Default::default() }));
    let begin = frame(Frame::SnapshotBegin(v1::SnapshotBegin { buckets: vec![0xff; 32].into(), ..Default::default() }));
    let end = frame(Frame::SnapshotEnd(v1::SnapshotEnd {
        revision: u64::MAX,
        digest: vec![0; 16].into(),
        ..Default::default()
    }));
    let frames = |frames: &[&[u8]]| script::write(frames.iter().map(|body| Part { tag: 0, body }));
    named([
        ("snapshot", sent(&snapshot)),
        ("agent", sent(&lively().0)),
        ("bookmark-first", frames(&[&bookmark])),
        ("empty-snapshot", frames(&[&welcome, &begin, &end, &bookmark])),
        ("snapshot-in-a-snapshot", frames(&[&welcome, &begin, &begin, &end])),
        ("end-without-a-beginning", frames(&[&welcome, &end])),
        ("welcome-twice", frames(&[&welcome, &welcome, &bookmark])),
    ])
}
