//! Those who do everything right: a publisher, agents that stay, and guests who come, look and go.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use nimbus_client::{Effect, Item, Mirror};
use nimbus_wire::v1::{self, bus_client::BusClient, event::Change, frame::Frame, publisher_client::PublisherClient};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tonic::transport::{Channel, Endpoint};

use crate::hostile::beat::{self, BEAT};

/// All of them. They end with this value.
pub(crate) struct Honest {
    shared: Arc<Shared>,
    reached: Vec<watch::Receiver<u64>>,
    _tasks: JoinSet<()>,
}

/// What all of them know.
struct Shared {
    began: Instant,
    /// When each number was published, in microseconds since the beginning; numbers begin at one.
    published: Mutex<Vec<u64>>,
    /// The revision of the last one.
    revision: AtomicU64,
    /// Microseconds from publishing to receipt.
    latencies: Mutex<Vec<u64>>,
    errors: Mutex<Vec<String>>,
    guests: AtomicU64,
    /// The session of the first agent.
    session: AtomicU64,
}

/// What they saw in some time.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    pub(crate) received: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) guests: u64,
    pub(crate) errors: Vec<String>,
}

const AGENTS: usize = 5;

/// Between two changes.
const PACE: Duration = Duration::from_millis(10);

/// Between two guests.
const VISITS: Duration = Duration::from_millis(200);

/// Nothing that goes well takes as long, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Honest ===

impl Honest {
    pub(crate) async fn start(address: SocketAddr) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            began: Instant::now(),
            published: Mutex::default(),
            revision: AtomicU64::new(0),
            latencies: Mutex::default(),
            errors: Mutex::default(),
            guests: AtomicU64::new(0),
            session: AtomicU64::new(0),
        });
        let mut publisher = PublisherClient::new(connect(address).await?);
        publisher.sync(tokio_stream::iter(beat::sync())).await?;
        let (mut tasks, mut reached) = (JoinSet::new(), Vec::new());
        for at in 0..AGENTS {
            let (sender, receiver) = watch::channel(0);
            reached.push(receiver);
            let agent = Agent::join(at, address, shared.clone(), sender)
                .await
                .context("an honest agent cannot join")?;
            tasks.spawn(agent.run());
        }
        tasks.spawn(shared.clone().publish(publisher));
        tasks.spawn(shared.clone().visit(address));
        Ok(Self { shared, reached, _tasks: tasks })
    }

    /// What they have seen since this was last asked.
    pub(crate) fn seen(&self) -> Seen {
        let mut latencies = std::mem::take(&mut *self.shared.latencies.lock());
        latencies.sort_unstable();
        let percentile = |percent: usize| {
            let at = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
            latencies.get(at).map_or(0.0, |micros| *micros as f64 / 1e3)
        };
        Seen {
            received: latencies.len(),
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            guests: self.shared.guests.swap(0, Ordering::Relaxed),
            errors: std::mem::take(&mut *self.shared.errors.lock()),
        }
    }

    /// Waits until every agent has all that was published by now, and a guest was served.
    ///
    /// # Errors
    /// If one of them never has, which is a sentence.
    pub(crate) async fn in_sync(&self) -> Result<(), String> {
        let (wanted, guests) =
            (self.shared.revision.load(Ordering::Acquire), self.shared.guests.load(Ordering::Relaxed));
        for (at, reached) in self.reached.iter().enumerate() {
            let mut reached = reached.clone();
            let reach = async { reached.wait_for(|reached| *reached >= wanted).await.map(|_| ()) };
            if !matches!(timeout(PATIENCE, reach).await, Ok(Ok(()))) {
                let found = *self.reached[at].borrow();
                return Err(format!("honest agent {at} is at revision {found}, not at {wanted}"));
            }
        }
        let served = async {
            while self.shared.guests.load(Ordering::Relaxed) == guests {
                tokio::time::sleep(PACE).await;
            }
        };
        timeout(PATIENCE, served).await.map_err(|_| "no guest was served any more".to_owned())
    }

    /// The session of one of them.
    pub(crate) fn session(&self) -> u64 {
        self.shared.session.load(Ordering::Relaxed)
    }
}

// === impl Shared ===

impl Shared {
    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn complain(&self, who: &str, what: &dyn std::fmt::Display) {
        self.errors.lock().push(format!("{who}: {what}"));
    }

    /// Publishes, on and on.
    async fn publish(self: Arc<Self>, mut publisher: PublisherClient<Channel>) {
        let mut ticks = interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let number = {
                let mut published = self.published.lock();
                published.push(self.micros());
                published.len() as u64
            };
            match publisher.apply(beat::publish(number)).await {
                Ok(response) => self.revision.store(response.into_inner().revision, Ordering::Release),
                Err(status) => self.complain("the publisher", &status),
            }
        }
    }

    /// Comes, looks and goes, on and on.
    async fn visit(self: Arc<Self>, address: SocketAddr) {
        let mut ticks = interval(VISITS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match timeout(PATIENCE, guest(address)).await {
                Ok(Ok(())) => drop(self.guests.fetch_add(1, Ordering::Relaxed)),
                Ok(Err(error)) => self.complain("a guest", &format_args!("{error:#}")),
                Err(_) => self.complain("a guest", &"was not answered"),
            }
        }
    }
}

/// Connects, lists everything, and reads a snapshot.
async fn guest(address: SocketAddr) -> anyhow::Result<()> {
    let mut client = BusClient::new(connect(address).await?);
    let listed = client.list(v1::ListRequest::default()).await?.into_inner();
    anyhow::ensure!(!listed.objects.is_empty(), "nothing is listed");
    let kinds = vec![BEAT.to_owned()];
    let mut frames = client
        .subscribe(v1::SubscribeRequest { kinds, ..v1::SubscribeRequest::default() })
        .await?
        .into_inner();
    while let Some(frame) = frames.message().await? {
        if matches!(frame.frame, Some(Frame::SnapshotEnd(_))) {
            return Ok(());
        }
    }
    anyhow::bail!("the snapshot has no end")
}

/// An agent that stays.
struct Agent {
    name: String,
    client: BusClient<Channel>,
    frames: tonic::Streaming<v1::Frame>,
    mirror: Mirror<Arc<Item>>,
    shared: Arc<Shared>,
    reached: watch::Sender<u64>,
    session: u64,
    sequence: u64,
    first: bool,
}

// === impl Agent ===

impl Agent {
    async fn join(
        at: usize,
        address: SocketAddr,
        shared: Arc<Shared>,
        reached: watch::Sender<u64>,
    ) -> anyhow::Result<Self> {
        let name = format!("honest-{at}");
        let mut client = BusClient::new(connect(address).await?);
        let request = v1::SubscribeRequest {
            agent: name.clone(),
            kinds: vec![BEAT.to_owned()],
            ..v1::SubscribeRequest::default()
        };
        let frames = client.subscribe(request).await?.into_inner();
        let mirror = Mirror::default();
        Ok(Self { name, client, frames, mirror, shared, reached, session: 0, sequence: 0, first: at == 0 })
    }

    async fn run(mut self) {
        // It stays connected, so that whatever ends is an error.
        let error = loop {
            match self.frames.message().await {
                Ok(Some(frame)) => {
                    if let Err(error) = self.take(frame).await {
                        break error;
                    }
                }
                Ok(None) => break "its stream has ended".to_owned(),
                Err(status) => break status.to_string(),
            }
        };
        self.shared.complain(&self.name, &error);
    }

    async fn take(&mut self, frame: v1::Frame) -> Result<(), String> {
        self.time(&frame);
        let position = match self.mirror.take(frame).map_err(|error| error.to_string())? {
            Effect::Welcome { session, .. } => {
                self.session = session;
                if self.first {
                    self.shared.session.store(session, Ordering::Relaxed);
                }
                return Ok(());
            }
            Effect::Mismatch { mismatch, .. } => return Err(mismatch.to_string()),
            Effect::Changes { position: Some(position), .. } => position,
            Effect::Exact { position, .. } => {
                self.report(position.revision.0).await?;
                position
            }
            _ => return Ok(()),
        };
        self.reached.send_replace(position.revision.0);
        Ok(())
    }

    /// Says that it has applied everything.
    async fn report(&mut self, revision: u64) -> Result<(), String> {
        self.sequence += 1;
        let report = v1::ReportRequest {
            session: self.session,
            sequence: self.sequence,
            received: revision,
            applied: revision,
            ..v1::ReportRequest::default()
        };
        let answer = self.client.report_once(report).await.map_err(|status| format!("its report: {status}"))?;
        // Somebody who speaks for it would be further.
        let taken = answer.into_inner().sequence;
        if taken == self.sequence { Ok(()) } else { Err(format!("its report {} is taken as {taken}", self.sequence)) }
    }

    /// Takes note of how long changes were on their way.
    fn time(&self, frame: &v1::Frame) {
        let Some(Frame::Batch(batch)) = &frame.frame else { return };
        let now = self.shared.micros();
        let numbers = batch.events.iter().filter_map(|event| match &event.change {
            Some(Change::Put(object)) => beat::number(object).filter(|number| *number > 0),
            _ => None,
        });
        let published = self.shared.published.lock();
        let times: Vec<u64> = numbers
            .filter_map(|number| published.get(usize::try_from(number).ok()? - 1))
            .map(|at| now.saturating_sub(*at))
            .collect();
        drop(published);
        self.shared.latencies.lock().extend(times);
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<Channel> {
    Ok(Endpoint::from_shared(format!("http://{address}"))?.connect().await?)
}
