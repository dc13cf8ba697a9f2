//! Somebody who does everything right, and whom nothing that others do may disturb.

use std::{collections::BTreeMap, time::Duration};

use nimbus_bus::Config;
use nimbus_wire::v1::{self, bus_client::BusClient, frame::Frame, publisher_client::PublisherClient};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

use crate::{demo, local::LocalBus, wait};

/// A bus, a publisher and an agent that are connected all the time, and clients for the test itself.
pub(crate) struct World {
    pub(crate) bus: LocalBus,
    pub(crate) reader: BusClient<Channel>,
    pub(crate) writer: PublisherClient<Channel>,
    publisher: PublisherClient<Channel>,
    frames: Streaming<v1::Frame>,
    /// Names the agent's subscription in its reports.
    session: u64,
    /// What the agent holds.
    held: BTreeMap<(String, String, String), v1::Object>,
    beats: u32,
}

const PUBLISHER: &str = "honest-publisher";
const AGENT: &str = "honest-agent";

/// Longer than any test.
const NO_BOOKMARKS: Duration = Duration::from_secs(3600);

// === impl World ===

impl World {
    /// A world with the usual limits.
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    /// A world whose bus is configured by the test.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let bus = LocalBus::start(|config| {
            // A bookmark wakes a stream too, and would hide that a change did not.
            config.bookmark_interval = NO_BOOKMARKS;
            change(config);
        })
        .await;
        let (mut honest_reader, mut publisher) = bus.clients().await;
        let descriptor_set = demo::descriptor_set().into();
        let register = v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() };
        publisher.register_kinds(register).await.unwrap();
        let objects = vec![demo::policy("one", "a", 1), demo::policy("two", "b", 2)];
        publisher.sync(tokio_stream::iter(demo::sync(PUBLISHER, objects))).await.unwrap();

        let subscribe = v1::SubscribeRequest { agent: AGENT.to_owned(), ..v1::SubscribeRequest::default() };
        let frames = honest_reader.subscribe(subscribe).await.unwrap().into_inner();
        let (reader, writer) = bus.clients().await;
        let mut world = Self { bus, reader, writer, publisher, frames, session: 0, held: BTreeMap::new(), beats: 0 };
        while !matches!(world.next_frame().await, Frame::SnapshotEnd(_)) {}
        assert_eq!(world.held.len(), 2);
        world
    }

    /// Publishes something new and waits until the agent has it. Then it must hold exactly what the bus lists, and
    /// the first objects that were accepted are among it.
    pub(crate) async fn goes_on(&mut self) {
        self.beats += 1;
        let op = demo::upsert(demo::policy("beat", "a", self.beats));
        let response = wait::for_it("an honest publish", self.publisher.apply(demo::apply(PUBLISHER, vec![op]))).await;
        let revision = response.unwrap().into_inner().revision;
        let mut at = 0;
        while at < revision {
            match self.next_frame().await {
                Frame::Batch(batch) => at = at.max(batch.revision),
                Frame::Bookmark(_) => {}
                other => panic!("an agent that is up to date is sent {other:?}"),
            }
        }
        let listed = wait::for_it("an honest list", self.list()).await;
        assert_eq!(self.held.values().cloned().collect::<Vec<_>>(), listed);
        for name in ["one", "two", "beat"] {
            assert!(listed.iter().any(|object| object.name == name), "{name} was accepted and is gone");
        }
    }

    /// What the bus says that the agent should hold, page by page.
    async fn list(&mut self) -> Vec<v1::Object> {
        let (mut objects, mut page_token) = (Vec::new(), String::new());
        loop {
            let agent = AGENT.to_owned();
            let request = v1::ListRequest { agent, page_token, ..v1::ListRequest::default() };
            let page = self.reader.list(request).await.unwrap().into_inner();
            objects.extend(page.objects);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return objects;
            }
        }
    }

    /// The agent says how far it is, which changes nothing for it.
    pub(crate) async fn report(&mut self, sequence: u64) {
        let report = v1::ReportRequest { session: self.session, sequence, ..v1::ReportRequest::default() };
        self.reader.report_once(report).await.unwrap();
    }

    /// The names of everything that the agent holds.
    pub(crate) fn held_names(&self) -> Vec<&str> {
        self.held.values().map(|object| object.name.as_str()).collect()
    }

    /// An object that must exist.
    pub(crate) async fn get(&mut self, name: &str) -> v1::Object {
        let v1::Key { kind, namespace, name } = demo::key(name);
        let response = self.reader.get(v1::GetRequest { kind, namespace, name }).await.unwrap();
        response.into_inner().object.unwrap()
    }

    /// Publishes as somebody else, and expects it to be accepted.
    pub(crate) async fn publish(&mut self, publisher: &str, objects: Vec<v1::Object>) -> v1::ApplyResponse {
        let ops = objects.into_iter().map(demo::upsert).collect();
        self.writer.apply(demo::apply(publisher, ops)).await.unwrap().into_inner()
    }

    async fn next_frame(&mut self) -> Frame {
        let frame = wait::for_it("a frame for the honest agent", self.frames.message()).await;
        let frame = frame.unwrap().expect("the honest agent is not sent away").frame.unwrap();
        match &frame {
            Frame::Welcome(welcome) => self.session = welcome.session,
            Frame::Batch(batch) => batch.events.iter().for_each(|event| self.take(event)),
            _ => {}
        }
        frame
    }

    fn take(&mut self, event: &v1::Event) {
        match event.change.clone().unwrap() {
            v1::event::Change::Put(object) => {
                let key = (object.kind.clone(), object.namespace.clone(), object.name.clone());
                self.held.insert(key, object);
            }
            v1::event::Change::Delete(gone) => drop(self.held.remove(&(gone.kind, gone.namespace, gone.name))),
        }
    }
}

/// The status of a call that must fail, if it has this code and all these words.
#[track_caller]
pub(crate) fn expect_refusal<T>(result: Result<T, Status>, code: Code, words: &[&str]) -> Status {
    let Err(status) = result else { panic!("accepted, but expected {code:?} with {words:?}") };
    let missing: Vec<_> = words.iter().filter(|words| !status.message().contains(**words)).collect();
    assert!(status.code() == code && missing.is_empty(), "expected {code:?} with {words:?}, found {status:?}");
    status
}

/// The same, with the field that the details name.
#[track_caller]
pub(crate) fn expect_bad_field<T>(result: Result<T, Status>, field: &str, words: &[&str]) {
    let status = expect_refusal(result, Code::InvalidArgument, words);
    let details = status.get_details_bad_request().unwrap_or_else(|| panic!("no details in {status:?}"));
    let fields: Vec<_> = details.field_violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, [field], "{status:?}");
}

/// The same, with what the details say about an object.
#[track_caller]
pub(crate) fn expect_precondition<T>(result: Result<T, Status>, what: &str, subject: &str, words: &[&str]) {
    let status = expect_refusal(result, Code::FailedPrecondition, words);
    let details = status
        .get_details_precondition_failure()
        .unwrap_or_else(|| panic!("no details in {status:?}"));
    let found: Vec<_> = details
        .violations
        .iter()
        .map(|found| (found.r#type.as_str(), found.subject.as_str()))
        .collect();
    assert_eq!(found, [(what, subject)], "{status:?}");
}
