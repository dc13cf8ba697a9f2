//! A bus that says what a test tells it to, right or wrong.

use std::{io, pin::Pin, sync::Arc};

use nimbus_agent::{Agent, AgentBuilder, Connector, Io, Spec};
use nimbus_core::{Digest, LeafHasher, ObjectKey};
use nimbus_wire::v1::{
    self, Mode,
    bus_server::{Bus, BusServer},
    frame::Frame,
};
use parking_lot::Mutex;
use prost::Message as _;
use tokio::{
    io::DuplexStream,
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, transport::Server};

use crate::{
    recorder::{Alpha, Recorder},
    world::alpha_key,
};

type Answer = Result<v1::Frame, Status>;

/// A bus that says what a test tells it to. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Fake(Arc<State>);

struct State {
    connections: mpsc::Sender<io::Result<DuplexStream>>,
    /// What each subscription is answered with, in turn.
    scripts: Mutex<Vec<Result<mpsc::Receiver<Answer>, Status>>>,
    asked: watch::Sender<Vec<(Instant, v1::SubscribeRequest)>>,
    reports: watch::Sender<Vec<v1::ReportRequest>>,
    refusals: Mutex<Vec<Status>>,
}

/// What one subscription is sent.
pub(crate) struct Script(mpsc::Sender<Answer>);

pub(crate) const EPOCH: u64 = 3;
pub(crate) const SCOPE: u64 = 4;

// === impl Fake ===

impl Fake {
    pub(crate) fn start() -> Self {
        let (connections, incoming) = mpsc::channel(16);
        let fake = Self(Arc::new(State {
            connections,
            scripts: Mutex::default(),
            asked: watch::Sender::default(),
            reports: watch::Sender::default(),
            refusals: Mutex::default(),
        }));
        let service = BusServer::new(fake.clone());
        tokio::spawn(async move {
            let incoming = ReceiverStream::new(incoming);
            Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        fake
    }

    /// The next subscription that nobody has a script for is sent what this one is told.
    pub(crate) fn script(&self) -> Script {
        let (sender, receiver) = mpsc::channel(64);
        self.0.scripts.lock().push(Ok(receiver));
        Script(sender)
    }

    /// The next subscription that nobody has a script for is refused.
    pub(crate) fn refuse(&self, status: Status) {
        self.0.scripts.lock().push(Err(status));
    }

    /// The next reports are not taken.
    pub(crate) fn refuse_reports(&self, times: usize, status: Status) {
        self.0.refusals.lock().extend(vec![status; times]);
    }

    /// Waits for so many subscriptions, and says when each was asked for.
    pub(crate) async fn asked(&self, times: usize) -> Vec<(Instant, v1::SubscribeRequest)> {
        self.0.asked.subscribe().wait_for(|asked| asked.len() >= times).await.unwrap().clone()
    }

    /// Waits for a report like that.
    pub(crate) async fn reported(&self, wanted: impl Fn(&v1::ReportRequest) -> bool) -> v1::ReportRequest {
        let mut reports = self.0.reports.subscribe();
        let reports = reports.wait_for(|reports| reports.iter().any(&wanted)).await.unwrap();
        reports.iter().find(|report| wanted(report)).unwrap().clone()
    }

    pub(crate) fn builder(&self, recorder: &Recorder) -> AgentBuilder {
        Agent::builder("a", "http://bus")
            .connector(self.clone())
            .handle::<Alpha, _>(recorder.clone())
            .seed(3)
    }
}

impl Connector for Fake {
    fn connect(&self, _host: &str, _port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let connections = self.0.connections.clone();
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(64 << 10);
            connections.send(Ok(far)).await.unwrap();
            Ok(Box::new(near) as Box<dyn Io>)
        })
    }
}

#[tonic::async_trait]
impl Bus for Fake {
    type SubscribeStream = ReceiverStream<Answer>;

    async fn subscribe(
        &self,
        request: Request<v1::SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        self.0.asked.send_modify(|asked| asked.push((Instant::now(), request.into_inner())));
        let mut scripts = self.0.scripts.lock();
        if scripts.is_empty() {
            return Err(Status::unavailable("no script"));
        }
        scripts.remove(0).map(|script| Response::new(ReceiverStream::new(script)))
    }

    async fn report_once(&self, request: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        if let Some(refusal) = self.0.refusals.lock().pop() {
            return Err(refusal);
        }
        let report = request.into_inner();
        let sequence = report.sequence;
        self.0.reports.send_modify(|reports| reports.push(report));
        Ok(Response::new(v1::ReportResponse { sequence, ..Default::default() }))
    }

    async fn report(&self, _: Request<Streaming<v1::ReportRequest>>) -> Result<Response<v1::ReportResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn get(&self, _: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn list_kinds(&self, _: Request<v1::ListKindsRequest>) -> Result<Response<v1::ListKindsResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }
}

// === impl Script ===

impl Script {
    pub(crate) async fn say(&self, frame: Frame) {
        self.0.send(Ok(v1::Frame { frame: Some(frame) })).await.unwrap();
    }

    pub(crate) async fn end(self, status: Status) {
        self.0.send(Err(status)).await.unwrap();
    }

    pub(crate) async fn welcome(&self, session: u64, mode: Mode) {
        let position = Some(v1::Position { epoch: EPOCH, revision: 1, scope: SCOPE });
        let welcome =
            v1::Welcome { session, position, mode: mode.into(), bookmark_interval_ms: 600_000, ..Default::default() };
        self.say(Frame::Welcome(welcome)).await;
    }

    pub(crate) async fn batch(&self, revision: u64, events: Vec<v1::Event>) {
        self.say(Frame::Batch(v1::Batch { events, revision })).await;
    }

    pub(crate) async fn notice(&self, notice: v1::notice::Notice) {
        self.say(Frame::Notice(v1::Notice { notice: Some(notice) })).await;
    }

    /// A snapshot of all these, whole.
    pub(crate) async fn snapshot(&self, revision: u64, events: Vec<v1::Event>) {
        let (digest, objects) = (sum(&events), events.len() as u64);
        self.say(Frame::SnapshotBegin(v1::SnapshotBegin::default())).await;
        self.batch(0, events).await;
        self.say(Frame::SnapshotEnd(v1::SnapshotEnd { revision, objects, digest })).await;
    }

    pub(crate) async fn bookmark(&self, revision: u64, events: &[v1::Event]) {
        let (digest, objects) = (sum(events), events.len() as u64);
        self.say(Frame::Bookmark(v1::Bookmark { revision, digest, objects, publishers: Vec::new() }))
            .await;
    }
}

pub(crate) fn sum(events: &[v1::Event]) -> bytes::Bytes {
    let root: Digest = events.iter().map(|event| Digest::from_slice(&event.digest).unwrap()).collect();
    root.as_bytes().to_vec().into()
}

/// An object, with a digest as a bus would give it.
pub(crate) fn put_event(name: &str, value: &str, needs: &[ObjectKey]) -> v1::Event {
    let refs = needs.iter().map(|key| {
        let v1::Key { kind, namespace, name } = key.to_wire();
        v1::Reference { kind, namespace, name, ..v1::Reference::default() }
    });
    let object = v1::Object {
        kind: Alpha::kind().to_string(),
        name: name.to_owned(),
        uid: "u".to_owned(),
        generation: 1,
        revision: 1,
        manager: "controller".to_owned(),
        refs: refs.collect(),
        spec: Some(Alpha { value: value.to_owned() }.pack()),
        ..Default::default()
    };
    let mut hasher = LeafHasher::new(&alpha_key(name));
    hasher.part(&object.encode_to_vec());
    let digest = hasher.finish().as_bytes().to_vec().into();
    v1::Event { change: Some(v1::event::Change::Put(object)), digest }
}

pub(crate) fn delete_event(name: &str) -> v1::Event {
    let removal = v1::Removal { kind: Alpha::kind().to_string(), name: name.to_owned(), ..Default::default() };
    v1::Event { change: Some(v1::event::Change::Delete(removal)), ..Default::default() }
}
