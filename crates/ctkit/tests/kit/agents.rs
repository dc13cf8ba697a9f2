//! What agents report, as reactors hear it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use ctkit::{
    Action, AgentReport, CommitError, Committed, Context, Controller, Failure, Guard, Kind, Manager, Object, ObjectKey,
    Presence, Reactor, Record, Spec as _, Store, Target, TargetEvent, Txn, functions,
};
use nimbus_client::{Channel, Endpoint};
use nimbus_core::PublisherId;
use nimbus_wire::v1::{self, bus_client::BusClient, frame::Frame};
use parking_lot::Mutex;
use tokio_stream::Stream;
use tonic::Streaming;

use crate::{
    faulty::Faulty,
    kinds::{Policy, PolicyStatus, Rules},
    life::Life,
    log::Log,
    net::{Daemon, Net},
    world::{put, quiet, ready, standing, until},
};

/// An agent of the simplest sort.
struct Agent {
    client: BusClient<Channel>,
    frames: Streaming<v1::Frame>,
    session: u64,
    sequence: u64,
    revision: u64,
}

/// Publishes one child, notes everything that it hears, and takes its time.
#[derive(Clone, Default)]
struct Listening {
    log: Log,
    applied: Log,
    /// Objects that a call is about.
    busy: Arc<Mutex<BTreeSet<String>>>,
    /// So many reports are not taken.
    failures: Arc<Mutex<u32>>,
}

/// A bus that at first cannot say how far anything has come. Clones are the same.
#[derive(Clone)]
struct Unsure {
    store: Store,
    /// So many times more.
    fails: Arc<AtomicU32>,
}

// === impl Unsure ===

impl Target for Unsure {
    type Sync = <Store as Target>::Sync;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        Target::commit(&self.store, txn).await
    }

    async fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<Self::Sync, CommitError> {
        self.store.begin_sync(publisher, fence, kinds, leases).await
    }

    async fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> Result<Vec<Arc<Record>>, CommitError> {
        self.store.published(publisher, kinds).await
    }

    async fn propagation(&self, key: &ObjectKey) -> Result<v1::Propagation, CommitError> {
        let one_less = |left: u32| left.checked_sub(1);
        match self.fails.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Err(CommitError::Unavailable("not now".into())),
            Err(_) => self.store.propagation(key).await,
        }
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        self.store.reports(kinds)
    }
}

// === impl Agent ===

impl Agent {
    async fn connect(net: &Net, name: &str) -> Self {
        let endpoint = Endpoint::parse("http://bus").unwrap();
        let channel = Channel::open(net, &endpoint).await.unwrap();
        let mut client = BusClient::with_origin(channel, endpoint.uri().clone());
        let kinds = vec![Rules::kind().to_string()];
        let request = v1::SubscribeRequest { kinds, agent: name.to_owned(), ..Default::default() };
        let mut frames = client.subscribe(request).await.unwrap().into_inner();
        let Some(Frame::Welcome(welcome)) = frames.message().await.unwrap().unwrap().frame else {
            panic!("no welcome")
        };
        Self { client, frames, session: welcome.session, sequence: 0, revision: 0 }
    }

    /// Comes, reads everything that is published, and says that it has applied it.
    async fn join(net: &Net, name: &str, store: &Store) -> Self {
        let mut agent = Self::connect(net, name).await;
        agent.read(store).await;
        agent.report(&[]).await;
        agent
    }

    /// Reads until it has everything that is published.
    async fn read(&mut self, store: &Store) {
        let (snapshot, kind) = (store.snapshot(), Rules::kind());
        let newest = snapshot.list(&kind).map(|record| record.revision().0).max().unwrap_or_default();
        while self.revision < newest {
            match self.frames.message().await.unwrap().unwrap().frame {
                Some(Frame::SnapshotEnd(end)) => self.revision = end.revision,
                Some(Frame::Batch(batch)) if batch.revision > 0 => self.revision = batch.revision,
                _ => {}
            }
        }
    }

    /// Says that it has applied everything, but for what failed.
    async fn report(&mut self, failed: &[(v1::Key, u64, String)]) {
        self.sequence += 1;
        let exception = |(key, generation, message): &(v1::Key, u64, String)| v1::Exception {
            key: Some(key.clone()),
            generation: *generation,
            phase: v1::Phase::Failed.into(),
            message: message.clone(),
            ..Default::default()
        };
        let report = v1::ReportRequest {
            session: self.session,
            sequence: self.sequence,
            received: self.revision,
            applied: self.revision,
            exceptions: failed.iter().map(exception).collect(),
            full: true,
            ..Default::default()
        };
        self.client.report_once(report).await.unwrap();
    }
}

// === impl Listening ===

impl Listening {
    fn controller(&self) -> Controller {
        Controller::new(self.clone()).named("policies").publishes::<Rules>()
    }

    /// One call at a time for each object, and each takes a while.
    async fn alone(&self, name: &str) {
        assert!(self.busy.lock().insert(name.to_owned()), "two calls at once");
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.busy.lock().remove(name);
    }
}

impl Reactor<Policy> for Listening {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        self.alone(policy.name()).await;
        self.applied.note(&*policy.spec.text);
        cx.update_status(|status: &mut PolicyStatus| status.zones = 1);
        cx.publish(Object::derived(&policy, "a", Rules::of(&policy, "a"))).await?;
        Ok(Action::done())
    }

    async fn on_agent_status(&self, cx: &Context, report: AgentReport<Policy>) -> Result<Action, Failure> {
        self.alone(report.object.name()).await;
        let of = &report.propagation;
        let (numbers, lost) = (
            format!("{}/{} failed {}", of.applied, of.agents, of.failed),
            report.agents.iter().filter(|news| news.presence == Presence::Lost).count(),
        );
        let why: Vec<_> = of.failures.iter().map(|failure| format!(", {}", failure.message)).collect();
        let told = format!("{numbers}{}{}", why.concat(), if lost > 0 { ", lost" } else { "" });
        let mut failures = self.failures.lock();
        if *failures > 0 {
            *failures -= 1;
            self.log.note(format!("not now: {told}"));
            return Err(Failure::new("not now"));
        }
        self.log.note(told.clone());
        cx.update_status(|status: &mut PolicyStatus| status.note = told);
        Ok(Action::done())
    }
}

/// The only child, as exceptions name it.
fn child(store: &Store, message: &str) -> Vec<(v1::Key, u64, String)> {
    let (snapshot, kind) = (store.snapshot(), Rules::kind());
    snapshot
        .list(&kind)
        .map(|record| (record.key().to_wire(), record.generation().0, message.to_owned()))
        .collect()
}

fn said(store: &Store) -> String {
    said_of(store, "web")
}

fn said_of(store: &Store, name: &str) -> String {
    let Some(detail) = standing(store, name).detail else { return String::new() };
    let status: PolicyStatus = prost::Message::decode(&*detail.value).unwrap();
    assert_eq!(status.zones, 1, "what the one says does not undo what the other said");
    status.note
}

/// How the object fares, if anything is said of that yet.
fn ready_or_not(store: &Store) -> String {
    let conditions = standing(store, "web").conditions;
    conditions
        .into_iter()
        .find(|condition| condition.r#type == "Ready")
        .unwrap_or_default()
        .code
}

/// H04: edits and agents' reports were handled by two loops, which overtook each other in the same object.
#[tokio::test(start_paused = true)]
async fn reports_and_edits_of_one_object_never_overlap_and_all_arrive() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    life.settled().await;
    let mut agent = Agent::join(&daemon.net, "switch-1", store).await;
    until(|| reactor.log.len() > 0).await;
    assert_eq!(reactor.log.take().pop().unwrap(), "1/1 failed 0");

    for n in 0..50 {
        if n % 5 == 0 {
            put(store, "web", &[], &n.to_string()).await;
        }
        agent.report(&child(store, &format!("because {n}"))).await;
    }
    life.settled().await;
    agent.read(store).await;
    agent.report(&child(store, "in the end")).await;
    until(|| said(store) == "0/1 failed 1, in the end").await;
    assert!(reactor.log.len() < 25, "reports that wait are one: {:?}", reactor.log.take());
    assert_eq!(reactor.applied.take().pop().unwrap(), "45");
    agent.report(&[]).await;
    until(|| said(store) == "1/1 failed 0").await;
    life.stop().await;
}

/// H04: nobody was told of an agent that did not come back, and what was pending there stayed so.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_lost_is_news() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    life.settled().await;
    let agent = Agent::join(&daemon.net, "switch-1", store).await;
    quiet().await;
    reactor.log.take();
    drop(agent);
    until(|| reactor.log.len() > 0).await;
    assert_eq!(reactor.log.take(), ["0/0 failed 0, lost"]);
    let _agent = Agent::join(&daemon.net, "switch-1", store).await;
    until(|| said(store) == "1/1 failed 0").await;
    life.stop().await;
}

/// H01, H04: a reactor that failed to take a report was called with the object instead, and never heard the report.
#[tokio::test(start_paused = true)]
async fn a_report_that_was_not_taken_is_told_again() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    life.settled().await;
    *reactor.failures.lock() = 2;
    let mut agent = Agent::connect(&daemon.net, "switch-1").await;
    agent.read(store).await;
    agent.report(&child(store, "no")).await;
    until(|| reactor.log.len() == 1).await;
    life.settled().await;
    assert_eq!(ready(store, "web"), ("Failed".into(), "not now".into()));
    until(|| reactor.log.len() == 3).await;
    life.settled().await;
    let expected = ["not now: 0/1 failed 1, no", "not now: 0/1 failed 1, no", "0/1 failed 1, no"];
    assert_eq!(reactor.log.take(), expected);
    assert_eq!(reactor.applied.take(), ["first"], "the object has not changed");
    assert_eq!(ready(store, "web").0, "Reconciled");
    life.stop().await;
}

/// An agent reported when what the kit had written could not be read yet. That this was waited for counted as if somebody had
/// asked for another run, and the reactor was called with an object that had not changed.
#[tokio::test(start_paused = true)]
async fn a_report_that_comes_before_a_status_can_be_read_is_only_a_report() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let source = Faulty::lagging(store, Duration::from_millis(500));
    let life = Life::ready(Manager::between(source, store.clone()).controller(reactor.controller()).seed(7)).await;
    let mut agent = Agent::connect(&daemon.net, "switch-1").await;
    put(store, "web", &[], "first").await;
    until(|| ready_or_not(store) == "Reconciled").await;
    agent.read(store).await;
    agent.report(&[]).await;
    until(|| said(store) == "1/1 failed 0").await;
    life.settled().await;
    assert_eq!(reactor.applied.take(), ["first"], "the object has not changed");
    life.stop().await;
}

/// Reports about two objects could not be told, and the status of both said so. Telling the first one again, it turned out that
/// the reactor has no ear for agents, and whatever else there was to tell was forgotten: the second one stayed failed.
#[tokio::test(start_paused = true)]
async fn nothing_stays_failed_because_nobody_listens() {
    let (daemon, log) = (Daemon::start(|_| {}), Log::default());
    let store = &daemon.store;
    let noted = log.clone();
    let reactor = functions().on_apply(move |cx: Context, policy: Arc<Object<Policy>>| {
        noted.note(policy.name());
        async move {
            cx.publish(Object::derived(&policy, "a", Rules::of(&policy, "a"))).await?;
            Ok(Action::done())
        }
    });
    let controller = Controller::new(reactor).named("policies").publishes::<Rules>();
    let target = Unsure { store: store.clone(), fails: Arc::new(AtomicU32::new(2)) };
    let life = Life::ready(Manager::between(store.clone(), target.clone()).controller(controller).seed(7)).await;
    for name in ["db", "web"] {
        put(store, name, &[], "first").await;
    }
    life.settled().await;
    let _agent = Agent::join(&daemon.net, "switch-1", store).await;
    until(|| target.fails.load(Ordering::Relaxed) == 0).await;
    quiet().await;
    for name in ["db", "web"] {
        assert_eq!(ready(store, name), ("Reconciled".into(), String::new()), "{name}");
    }
    assert_eq!(log.take(), ["db", "web"], "no object has changed");
    life.stop().await;
}

/// An agent that came when all others had applied everything was in nobody's status: nothing was on its way any more, so
/// nobody was told.
#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_late_is_counted() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    put(store, "db", &[], "first").await;
    life.settled().await;
    let _first = Agent::join(&daemon.net, "switch-1", store).await;
    until(|| said_of(store, "db") == "1/1 failed 0" && said(store) == "1/1 failed 0").await;
    quiet().await;

    // It comes, and takes its time until it has applied anything.
    let mut late = Agent::connect(&daemon.net, "switch-2").await;
    until(|| said_of(store, "db") == "1/2 failed 0" && said(store) == "1/2 failed 0").await;
    quiet().await;
    late.read(store).await;
    late.report(&[]).await;
    until(|| said_of(store, "db") == "2/2 failed 0" && said(store) == "2/2 failed 0").await;
    life.stop().await;
}

/// What is told when one agent comes is told once when many do.
#[tokio::test(start_paused = true)]
async fn many_agents_that_come_at_once_cost_one_report_for_each_object() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    life.settled().await;
    let _first = Agent::join(&daemon.net, "switch-0", store).await;
    quiet().await;
    reactor.log.take();
    let mut agents = Vec::new();
    for n in 1..=100 {
        let agent = Agent::join(&daemon.net, &format!("switch-{n}"), store).await;
        agents.push(agent);
    }
    quiet().await;
    let told = reactor.log.take();
    assert_eq!(told.last().unwrap(), "101/101 failed 0");
    assert!(told.len() <= 3, "{told:?}");
    life.stop().await;
}

/// After a restart of the bus, agents came back one after the other, and statuses stayed at the number of those who were
/// there when the first of them was looked at.
#[tokio::test(start_paused = true)]
async fn statuses_are_right_again_when_agents_come_back_to_a_restarted_bus() {
    let (source, mut daemon, reactor) = (Store::in_memory(), Daemon::start(|_| {}), Listening::default());
    put(&source, "web", &[], "first").await;
    put(&source, "db", &[], "first").await;
    let manager = Manager::between(source.clone(), daemon.remote()).controller(reactor.controller()).seed(7);
    let life = Life::begin(manager).await;
    let say = |said: &str| said_of(&source, "db") == said && said_of(&source, "web") == said;
    for _ in 0..2 {
        let mut agents = Vec::new();
        for n in 0..3 {
            let agent = Agent::join(&daemon.net, &format!("switch-{n}"), &daemon.store).await;
            agents.push(agent);
            quiet().await;
            let all = format!("{}/{} failed 0", n + 1, n + 1);
            assert!(say(&all), "{} and {}, not {all}", said_of(&source, "db"), said_of(&source, "web"));
        }
        daemon.kill();
        quiet().await;
        daemon.begin();
        quiet().await;
        assert!(say("0/0 failed 0"), "{}", said_of(&source, "web"));
    }
    life.stop().await;
}

/// Agents that had come while no controller was there were in nobody's status after its restart.
#[tokio::test(start_paused = true)]
async fn agents_that_came_while_nobody_listened_are_counted() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    life.settled().await;
    let _first = Agent::join(&daemon.net, "switch-1", store).await;
    until(|| said(store) == "1/1 failed 0").await;
    life.stop().await;
    let _late = Agent::join(&daemon.net, "switch-2", store).await;
    quiet().await;
    let life = Life::new(store, reactor.controller()).await;
    until(|| said(store) == "2/2 failed 0").await;
    life.stop().await;
}

/// H32: a controller that was restarted believed what it had written before: what had failed since, and what did not fail
/// any more, stayed as it was until the next change.
#[tokio::test(start_paused = true)]
async fn what_agents_did_while_no_controller_was_there_is_known_after_its_restart() {
    let (daemon, reactor) = (Daemon::start(|_| {}), Listening::default());
    let store = &daemon.store;
    let life = Life::new(store, reactor.controller()).await;
    put(store, "web", &[], "first").await;
    life.settled().await;
    let mut good = Agent::join(&daemon.net, "switch-1", store).await;
    let mut bad = Agent::connect(&daemon.net, "switch-2").await;
    bad.read(store).await;
    bad.report(&child(store, "no room")).await;
    until(|| said(store) == "1/2 failed 1, no room").await;
    life.stop().await;

    bad.report(&[]).await;
    quiet().await;
    reactor.log.take();
    let life = Life::new(store, reactor.controller()).await;
    until(|| said(store) == "2/2 failed 0").await;
    life.stop().await;

    good.report(&child(store, "broken")).await;
    quiet().await;
    let life = Life::new(store, reactor.controller()).await;
    until(|| said(store) == "1/2 failed 1, broken").await;
    life.stop().await;
    let told = reactor.log.take();
    let pending = told.iter().filter(|told| !["2/2 failed 0", "1/2 failed 1, broken"].contains(&&***told));
    assert_eq!(pending.count(), 0, "nobody is pending who was not: {told:?}");
}
