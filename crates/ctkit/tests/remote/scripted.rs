//! Servers that say what a test wants to be said.

use std::sync::Arc;

use nimbus_core::{Digest, Revision};
use nimbus_store::{Content, Record, Slot};
use nimbus_wire::v1::{
    self,
    bus_server::{Bus, BusServer},
    fleet_server::{Fleet, FleetServer},
    frame::Frame,
    watch_status_response::Event,
};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt as _;
use tonic::{Request, Response, Status, Streaming, transport::Server};

use crate::world::{Net, PUBLISHER, kind};

/// What is answered to each subscription in turn.
type Script = Box<dyn Fn(usize) -> Result<Vec<Frame>, Status> + Send + Sync>;

/// What each subscription offered.
pub(crate) type Offers = Arc<Mutex<Vec<Option<v1::Resume>>>>;

struct Scripted {
    script: Script,
    offers: Offers,
}

type Frames = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::Frame, Status>> + Send>>;

#[tonic::async_trait]
impl Bus for Scripted {
    type SubscribeStream = Frames;

    async fn get(&self, _: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_kinds(&self, _: Request<v1::ListKindsRequest>) -> Result<Response<v1::ListKindsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn subscribe(&self, request: Request<v1::SubscribeRequest>) -> Result<Response<Frames>, Status> {
        let times = {
            let mut offers = self.offers.lock();
            offers.push(request.into_inner().resume);
            offers.len() - 1
        };
        let frames = (self.script)(times)?;
        let frames = frames.into_iter().map(|frame| Ok(v1::Frame { frame: Some(frame) }));
        let frames: Vec<_> = frames.collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(frames).chain(tokio_stream::pending()))))
    }

    async fn report(&self, _: Request<Streaming<v1::ReportRequest>>) -> Result<Response<v1::ReportResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn report_once(&self, _: Request<v1::ReportRequest>) -> Result<Response<v1::ReportResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

fn serve(net: &Net, script: Script) -> (JoinHandle<()>, Offers) {
    let offers = Offers::default();
    let scripted = BusServer::new(Scripted { script, offers: offers.clone() });
    let incoming = net.listen();
    let serving = async move { Server::builder().add_service(scripted).serve_with_incoming(incoming).await.unwrap() };
    (tokio::spawn(serving), offers)
}

fn object(name: &str, revision: u64) -> v1::Object {
    v1::Object {
        kind: kind().to_string(),
        name: name.to_owned(),
        uid: "u".to_owned(),
        generation: 1,
        revision,
        manager: PUBLISHER.to_owned(),
        spec: Some(prost_types::Any { type_url: format!("x/{}", kind()), value: b"1".to_vec() }),
        ..Default::default()
    }
}

fn digest(object: &v1::Object) -> Digest {
    let slot = Slot { revision: Revision(object.revision), seq: 0 };
    Record::new(Content::from_wire(object).unwrap(), slot).leaf(true)
}

fn event(object: v1::Object, digest: Digest) -> v1::Event {
    v1::Event { change: Some(v1::event::Change::Put(object)), digest: digest.as_bytes().to_vec().into() }
}

fn welcome(mode: v1::Mode) -> Frame {
    let position = Some(v1::Position { epoch: 1, revision: 5, scope: 1 });
    Frame::Welcome(v1::Welcome { session: 1, position, mode: mode.into(), ..Default::default() })
}

fn end(digests: &[Digest]) -> Frame {
    let digest: Digest = digests.iter().copied().collect();
    let (objects, digest) = (digests.len() as u64, digest.as_bytes().to_vec().into());
    Frame::SnapshotEnd(v1::SnapshotEnd { revision: 5, objects, digest })
}

fn batch(events: Vec<v1::Event>) -> Frame {
    Frame::Batch(v1::Batch { events, revision: 0 })
}

/// A bus that does not want this subscriber.
pub(crate) fn refusing(net: &Net) -> JoinHandle<()> {
    serve(net, Box::new(|_| Err(Status::permission_denied("not you")))).0
}

/// A bus with an object whose audience is written in a language of the future.
pub(crate) fn with_an_odd_object(net: &Net) -> JoinHandle<()> {
    let script = |_| {
        let (good, mut odd) = (object("good", 4), object("odd", 5));
        let digests = [digest(&good), digest(&odd)];
        let to = v1::audience::To::Selector("zone ~~ 'a'".to_owned());
        odd.audience = Some(v1::Audience { to: Some(to) });
        let events = vec![event(odd, digests[1]), event(good, digests[0])];
        let begin = Frame::SnapshotBegin(v1::SnapshotBegin::default());
        Ok(vec![welcome(v1::Mode::Snapshot), begin, batch(events), end(&digests)])
    };
    serve(net, Box::new(script)).0
}

/// A bus that loses an object at first, and sends it when it is asked again.
pub(crate) fn with_a_lost_object(net: &Net) -> (JoinHandle<()>, Offers) {
    let script = |times| {
        let (good, lost) = (object("good", 4), object("lost", 5));
        let digests = [digest(&good), digest(&lost)];
        let begin = Frame::SnapshotBegin(v1::SnapshotBegin::default());
        let mut events = vec![event(good, digests[0])];
        if times > 0 {
            events.push(event(lost, digests[1]));
        }
        Ok(vec![welcome(v1::Mode::Digest), begin, batch(events), end(&digests)])
    };
    serve(net, Box::new(script))
}

/// A fleet whose watchers are so slow that the bus begins again.
struct Slow;

type Statuses = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::WatchStatusResponse, Status>> + Send>>;
type Progress = tokio_stream::Empty<Result<v1::WaitForResponse, Status>>;

#[tonic::async_trait]
impl Fleet for Slow {
    type WaitForStream = Progress;
    type WatchStatusStream = Statuses;

    async fn list_agents(&self, _: Request<v1::ListAgentsRequest>) -> Result<Response<v1::ListAgentsResponse>, Status> {
        Ok(Response::new(v1::ListAgentsResponse { epoch: 9, ..Default::default() }))
    }

    async fn get_propagation(
        &self,
        _: Request<v1::GetPropagationRequest>,
    ) -> Result<Response<v1::GetPropagationResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn wait_for(&self, _: Request<v1::WaitForRequest>) -> Result<Response<Progress>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn watch_status(&self, _: Request<v1::WatchStatusRequest>) -> Result<Response<Statuses>, Status> {
        let report = |agent: &str| {
            let agent = v1::AgentInfo { agent: agent.to_owned(), ..Default::default() };
            Event::Report(v1::AgentReport { agent: Some(agent), ..Default::default() })
        };
        let caught = || Event::CaughtUp(v1::Caught { epoch: 9, revision: 1 });
        let restarted = Event::Restarted(v1::Restarted {});
        let events = vec![report("a"), report("b"), caught(), restarted, report("b"), caught()];
        let events = events.into_iter().map(|event| Ok(v1::WatchStatusResponse { event: Some(event) }));
        let events: Vec<_> = events.collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(events).chain(tokio_stream::pending()))))
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

/// A bus that begins again with its reports.
pub(crate) fn with_slow_watchers(net: &Net) -> JoinHandle<()> {
    let incoming = net.listen();
    let serving = Server::builder().add_service(FleetServer::new(Slow)).serve_with_incoming(incoming);
    tokio::spawn(async move { serving.await.unwrap() })
}
