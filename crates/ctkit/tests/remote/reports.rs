//! What agents report, and how far objects have come.

use std::{collections::BTreeSet, pin::Pin, time::Duration};

use ctkit::{CommitError, Target as _, TargetEvent};
use nimbus_client::{Channel, Endpoint};
use nimbus_core::Epoch;
use nimbus_wire::v1::{self, AgentState, bus_client::BusClient, frame::Frame};
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use tonic::Streaming;

use crate::world::{QUIET, World, draft, key, kind};

/// An agent of the simplest sort.
struct Agent {
    client: BusClient<Channel>,
    frames: Streaming<v1::Frame>,
    session: u64,
    sequence: u64,
}

struct Reports(Pin<Box<dyn Stream<Item = TargetEvent> + Send>>);

// === impl Agent ===

impl Agent {
    async fn connect(world: &World, name: &str) -> Self {
        let endpoint = Endpoint::parse("http://bus").unwrap();
        let channel = Channel::open(&world.net, &endpoint).await.unwrap();
        let mut client = BusClient::with_origin(channel, endpoint.uri().clone());
        let request =
            v1::SubscribeRequest { kinds: vec![kind().to_string()], agent: name.to_owned(), ..Default::default() };
        let mut frames = client.subscribe(request).await.unwrap().into_inner();
        let Some(Frame::Welcome(welcome)) = frames.message().await.unwrap().unwrap().frame else {
            panic!("no welcome")
        };
        Self { client, frames, session: welcome.session, sequence: 0 }
    }

    /// Reads until it has everything, and says that it has applied it, but for what failed.
    async fn apply(&mut self, failed: &[&str]) {
        let revision = loop {
            match self.frames.message().await.unwrap().unwrap().frame {
                Some(Frame::SnapshotEnd(end)) => break end.revision,
                Some(Frame::Batch(batch)) if batch.revision > 0 => break batch.revision,
                _ => {}
            }
        };
        self.sequence += 1;
        let exception = |name: &&str| v1::Exception {
            key: Some(key(name).to_wire()),
            generation: 1,
            phase: v1::Phase::Failed.into(),
            message: "no".to_owned(),
            ..Default::default()
        };
        let report = v1::ReportRequest {
            session: self.session,
            sequence: self.sequence,
            received: revision,
            applied: revision,
            exceptions: failed.iter().map(exception).collect(),
            ..Default::default()
        };
        self.client.report_once(report).await.unwrap();
    }
}

// === impl Reports ===

impl Reports {
    fn of(world: &World) -> Self {
        Self(Box::pin(world.remote().reports(&BTreeSet::from([kind()]))))
    }

    async fn next(&mut self) -> TargetEvent {
        timeout(QUIET * 3, self.0.next()).await.unwrap().unwrap()
    }

    /// The next report that is as wanted.
    async fn until(&mut self, wanted: impl Fn(&v1::AgentInfo) -> bool) -> v1::AgentInfo {
        loop {
            if let TargetEvent::Report(report) = self.next().await
                && let Some(agent) = report.agent.filter(&wanted)
            {
                return agent;
            }
        }
    }

    async fn connected(&mut self) -> Epoch {
        loop {
            if let TargetEvent::Connected(epoch) = self.next().await {
                return epoch;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reports_begin_with_the_epoch_and_everything_that_is_known() {
    let world = World::start();
    world.sync(&[draft("a", "1"), draft("b", "1")]).await;
    let mut agent = Agent::connect(&world, "switch-1").await;
    agent.apply(&["b"]).await;
    let mut reports = Reports::of(&world);
    assert!(matches!(reports.next().await, TargetEvent::Connected(Epoch(1))));
    let TargetEvent::Report(report) = reports.next().await else { panic!("an agent is known") };
    let info = report.agent.unwrap();
    assert_eq!((&*info.agent, info.failed, info.exceptions.len()), ("switch-1", 1, 1));
    assert!(matches!(reports.next().await, TargetEvent::CaughtUp));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_goes_is_lost_and_one_that_leaves_is_forgotten() {
    let world = World::start();
    world.sync(&[draft("a", "1")]).await;
    let mut reports = Reports::of(&world);
    let mut agent = Agent::connect(&world, "switch-1").await;
    agent.apply(&[]).await;
    reports.until(|info| info.in_sync).await;
    drop(agent);
    reports.until(|info| info.state() == AgentState::Away).await;
    reports.until(|info| info.state() == AgentState::Lost).await;

    let mut agent = Agent::connect(&world, "switch-2").await;
    let leaving = v1::ReportRequest { session: agent.session, sequence: 1, leaving: true, ..Default::default() };
    agent.client.report_once(leaving).await.unwrap();
    drop(agent);
    loop {
        if let TargetEvent::Forgotten(agent) = reports.next().await {
            assert_eq!(agent, "switch-2");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reports_come_back_and_say_which_bus_it_is() {
    let mut world = World::start();
    let mut reports = Reports::of(&world);
    assert_eq!(reports.connected().await, Epoch(1));
    assert!(matches!(reports.next().await, TargetEvent::CaughtUp));
    world.net.cut();
    assert_eq!(reports.connected().await, Epoch(1));
    assert!(matches!(reports.next().await, TargetEvent::CaughtUp));
    world.kill();
    assert!(timeout(QUIET, reports.0.next()).await.is_err(), "nothing is said while nobody is there");
    world.begin();
    assert_eq!(reports.connected().await, Epoch(2));
    assert!(matches!(reports.next().await, TargetEvent::CaughtUp));
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_begins_again_with_its_reports_looks_like_a_new_connection() {
    let world = World::start();
    let scripted = crate::scripted::with_slow_watchers(&world.net);
    let mut reports = Reports::of(&world);
    let mut said = Vec::new();
    while said.len() < 7 {
        said.push(match reports.next().await {
            TargetEvent::Connected(epoch) => format!("connected to {}", epoch.0),
            TargetEvent::Report(report) => report.agent.unwrap().agent,
            TargetEvent::CaughtUp => "caught up".to_owned(),
            event => panic!("{event:?}"),
        });
    }
    assert_eq!(said, ["connected to 9", "a", "b", "caught up", "connected to 9", "b", "caught up"]);
    scripted.abort();
}

#[tokio::test(start_paused = true)]
async fn propagation_is_that_of_the_object() {
    let world = World::start();
    world.sync(&[draft("a", "1"), draft("b", "1")]).await;
    let mut agent = Agent::connect(&world, "switch-1").await;
    agent.apply(&["b"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let remote = world.remote();
    let good = remote.propagation(&key("a")).await.unwrap();
    assert_eq!((good.agents, good.applied, good.failed), (1, 1, 0));
    let bad = remote.propagation(&key("b")).await.unwrap();
    assert_eq!((bad.agents, bad.applied, bad.failed), (1, 0, 1));
    assert_eq!(remote.propagation(&key("c")).await.unwrap_err(), CommitError::NotFound(key("c")));
}
