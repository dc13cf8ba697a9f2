//! The fleet over real gRPC, in paused time: agents that report, and those who ask about them.

mod asks;
mod waits;
mod watches;

use std::collections::BTreeMap;

use nimbus_bus::Config;
use nimbus_wire::v1::{
    self, bus_client::BusClient, fleet_client::FleetClient, frame::Frame, publisher_client::PublisherClient,
};
use tonic::{Status, Streaming, transport::Channel};

use crate::scripted::{self, KIND, Local, frame, object, until_bookmark};

/// An agent that subscribes and reports by hand.
pub(super) struct Agent {
    bus: BusClient<Channel>,
    pub(super) frames: Streaming<v1::Frame>,
    pub(super) session: u64,
    sequence: u64,
}

impl Agent {
    /// Subscribes, and reads until it has everything.
    pub(super) async fn connect(local: &Local, id: &str, zone: &str) -> Self {
        let labels = BTreeMap::from([("zone".to_owned(), zone.to_owned())]);
        let request = v1::SubscribeRequest { agent_labels: labels, software: "by hand".into(), ..scripted::agent(id) };
        let mut bus = local.bus().await;
        let mut frames = bus.subscribe(request).await.unwrap().into_inner();
        let Frame::Welcome(welcome) = frame(&mut frames).await.unwrap() else { panic!("no welcome") };
        until_bookmark(&mut frames).await;
        Self { bus, frames, session: welcome.session, sequence: 0 }
    }

    pub(super) async fn report(&mut self, report: v1::ReportRequest) -> v1::ReportResponse {
        self.sequence += 1;
        let report = v1::ReportRequest { session: self.session, sequence: self.sequence, ..report };
        self.bus.report_once(report).await.unwrap().into_inner()
    }

    /// Everything up to this revision is applied.
    pub(super) async fn applied(&mut self, revision: u64) {
        self.report(v1::ReportRequest { received: revision, applied: revision, ..Default::default() })
            .await;
    }

    /// The same, but for one object.
    pub(super) async fn failed(&mut self, revision: u64, name: &str, retryable: bool) {
        let exceptions = vec![exception(name, v1::Phase::Failed, retryable)];
        self.report(v1::ReportRequest { received: revision, applied: revision, exceptions, ..Default::default() })
            .await;
    }
}

pub(super) fn exception(name: &str, phase: v1::Phase, retryable: bool) -> v1::Exception {
    let message = "out of order".to_owned();
    v1::Exception { key: Some(key(name)), generation: 1, phase: phase.into(), message, retryable, ..Default::default() }
}

pub(super) fn key(name: &str) -> v1::Key {
    v1::Key { kind: KIND.into(), namespace: String::new(), name: name.into() }
}

pub(super) fn target(name: &str) -> Option<v1::Target> {
    Some(v1::Target { target: Some(v1::target::Target::Object(key(name))) })
}

/// A bus that nobody has to sync before snapshots end.
pub(super) fn start() -> Local {
    Local::start(config())
}

pub(super) fn config() -> Config {
    Config { assume_complete: true, ..scripted::config() }
}

pub(super) async fn fleet(local: &Local) -> FleetClient<Channel> {
    FleetClient::new(local.channel().await)
}

/// Publishes an object for these labels; its revision.
pub(super) async fn put(local: &Local, name: &str, bytes: usize, selector: &str) -> u64 {
    let to = v1::audience::To::Selector(selector.into());
    let audience = (!selector.is_empty()).then_some(v1::Audience { to: Some(to) });
    let upsert = v1::op::Op::Upsert(v1::Object { audience, ..object(name, bytes) });
    apply(local, upsert).await
}

pub(super) async fn delete(local: &Local, name: &str) -> u64 {
    apply(local, v1::op::Op::Delete(key(name))).await
}

async fn apply(local: &Local, op: v1::op::Op) -> u64 {
    let ops = vec![v1::Op { op: Some(op), ..Default::default() }];
    let request = v1::ApplyRequest { publisher: "controller".into(), ops, ..Default::default() };
    let answer = PublisherClient::new(local.channel().await).apply(request).await.unwrap();
    answer.into_inner().revision
}

/// The next message of a stream that goes on.
pub(super) async fn next<T>(stream: &mut Streaming<T>) -> Result<T, Status> {
    stream.message().await.map(|message| message.expect("the stream goes on"))
}
