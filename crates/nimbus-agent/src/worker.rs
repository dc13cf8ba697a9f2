//! The task that owns an agent: everything that happens goes through its one loop.

mod jobs;
mod reporting;

use std::{future::Future, path::Path, time::Duration};

use nimbus_client::{Advice, Arrival, Change, Effect, Mirror, Uplink};
use nimbus_core::{
    Labels, Position, Revision,
    planted::{self, Bug},
};
use nimbus_wire::v1::{self, Mode};
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tonic::Status;

use self::{jobs::Jobs, reporting::Reports};
use crate::{
    agent::AgentError,
    board::{Board, Policies},
    cache::{Aside, CacheError, Delta, Health, Keeper, Memory},
    handle::{AgentStatus, Command, Explanation, Link},
    journal::Journal,
    kinds::Kinds,
    metrics::{Metrics, ModeLabel},
    report::Reporter,
    settings::Settings,
};

/// What an agent is made of before it runs.
pub(crate) struct Worker {
    settings: Settings,
    kinds: Kinds,
    policies: Policies,
    metrics: Metrics,
    commands: mpsc::Receiver<Command>,
    status: watch::Sender<AgentStatus>,
}

/// A running agent.
struct Running {
    settings: Settings,
    labels: Labels,
    metrics: Metrics,
    uplink: Uplink,
    mirror: Mirror,
    board: Board,
    jobs: Jobs,
    keeper: Keeper,
    reporter: Reporter,
    journal: Journal,
    rng: SmallRng,
    status: watch::Sender<AgentStatus>,
    link: Link,
    publishers: Vec<(String, Duration)>,
    cache_failing: Option<String>,
    mismatches: u64,
    /// In a row.
    mismatched: u32,
    /// When to apply the last good state although no bus was found.
    detach_at: Option<Instant>,
    /// Since when there has been no bus.
    alone_since: Option<Instant>,
    /// What is on disk, and since when.
    saved: (Option<Position>, Instant),
    reports: Reports,
}

/// A position that only moved on is worth a write to disk this often: an older one leads to the same place.
const SAVE_POSITION_EVERY: Duration = Duration::from_secs(300);

/// Without a bus for this long, somebody should look.
const ALONE_FOR_LONG: Duration = Duration::from_secs(300);

/// Longer than it takes an agent to write what it must not forget.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Without anything else to do, the loop looks around this often.
const IDLE: Duration = Duration::from_secs(60);

// === impl Worker ===

impl Worker {
    pub(crate) fn new(
        settings: Settings,
        kinds: Kinds,
        policies: Policies,
        metrics: Metrics,
        commands: mpsc::Receiver<Command>,
        status: watch::Sender<AgentStatus>,
    ) -> Self {
        Self { settings, kinds, policies, metrics, commands, status }
    }

    pub(crate) async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), AgentError> {
        let Self { settings, kinds, policies, metrics, mut commands, status } = self;
        let (keeper, memory, aside) = match &settings.cache {
            None => (Keeper::forgetful(), Memory::default(), None),
            Some(path) => open(path, &settings).await?,
        };
        let mut journal = Journal::default();
        let now = Instant::now();
        if let Some(aside) = aside {
            tracing::error!(agent.id = %settings.id, moved.to = %aside.path.display(), reason = %aside.reason, "cache cannot be used, starting without");
            journal.note("CacheMovedAside", None, &aside.reason, now);
        }
        let mut health = keeper.health();
        let mut running = Running::new(settings, kinds, policies, metrics, keeper, memory, journal, status);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let now = Instant::now();
            running.begin_jobs(now);
            running.begin_report(now);
            running.show();
            let due = running.due(now);
            let Running { uplink, mirror, settings, labels, jobs, reports, .. } = &mut running;
            tokio::select! {
                () = &mut shutdown => break,
                arrival = uplink.next(|| settings.subscribe(labels, mirror.resume())) => running.arrive(arrival),
                (key, outcome) = jobs.next() => running.finish(&key, outcome),
                answer = reports.call.answer() => running.reported(answer),
                Some(command) = commands.recv() => running.obey(command),
                Ok(()) = health.changed() => {
                    let now_health = health.borrow_and_update().clone();
                    running.notice_disk(now_health);
                }
                () = sleep_until(due) => running.tick(Instant::now()),
            }
        }
        while let Ok(command) = commands.try_recv() {
            running.obey(command);
        }
        running.stop().await;
        Ok(())
    }
}

/// Opens the memory on disk. An agent that is just stopping may have it for a moment longer.
async fn open(path: &Path, settings: &Settings) -> Result<(Keeper, Memory, Option<Aside>), CacheError> {
    let deadline = Instant::now() + HAND_OVER;
    loop {
        match Keeper::open(path, &settings.id, settings.inline_disk) {
            Err(CacheError::Busy(_)) if Instant::now() < deadline => tokio::time::sleep(HAND_OVER / 50).await,
            opened => return opened,
        }
    }
}

// === impl Running ===

impl Running {
    #[allow(clippy::too_many_arguments, reason = "everything that an agent is made of, once")]
    fn new(
        settings: Settings,
        kinds: Kinds,
        policies: Policies,
        metrics: Metrics,
        keeper: Keeper,
        memory: Memory,
        journal: Journal,
        status: watch::Sender<AgentStatus>,
    ) -> Self {
        let now = Instant::now();
        let mut rng = SmallRng::seed_from_u64(settings.seed);
        let mut fork = || SmallRng::from_rng(&mut rng);
        let identity = Some(settings.id.to_string());
        let uplink =
            Uplink::new(settings.endpoints.clone(), settings.connector.clone(), identity, settings.reconnect, fork());
        let mut board = Board::new(policies, settings.retry, settings.quarantine, fork());
        let Memory { position, desired, applied, started, stale, saved_at, .. } = memory;
        let mirror = Mirror::restore(desired.values().cloned(), position);
        let detach_at =
            (!mirror.is_empty() || !applied.is_empty() || !started.is_empty()).then(|| now + settings.detached_after);
        if detach_at.is_some() {
            tracing::info!(agent.id = %settings.id, objects = mirror.len(), revision = position.map(|at| at.revision.0), saved = ?saved_at, "restored from disk");
            board.hold(true);
        }
        board.restore(
            desired.into_values().collect(),
            applied.into_values().collect(),
            started.into_values().collect(),
            // A machine that was restarted may have forgotten what handlers did.
            settings.trust && stale.is_empty(),
            now,
        );
        let jobs = Jobs::new(settings.id.clone(), kinds, keeper.clone(), settings.deadline, metrics.clone());
        Self {
            labels: settings.labels.clone(),
            settings,
            metrics,
            uplink,
            mirror,
            board,
            jobs,
            keeper,
            reporter: Reporter::default(),
            journal,
            rng,
            status,
            link: Link::Connecting,
            publishers: Vec::new(),
            cache_failing: None,
            mismatches: 0,
            mismatched: 0,
            detach_at,
            alone_since: Some(now),
            saved: (position, now),
            reports: Reports::new(now),
        }
    }

    /// When to look around if nothing else happens.
    fn due(&self, now: Instant) -> Instant {
        let times = [self.board.next_due().filter(|at| *at > now), self.detach_at, self.report_due()];
        times.into_iter().flatten().min().unwrap_or(now + IDLE)
    }

    fn begin_jobs(&mut self, now: Instant) {
        let room = self.settings.concurrency.saturating_sub(self.jobs.len());
        if room == 0 {
            return;
        }
        for job in self.board.take(room, now) {
            self.jobs.begin(job);
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Connected { endpoint } => {
                self.metrics.connections.inc();
                tracing::debug!(agent.id = %self.settings.id, endpoint, "connected");
            }
            Arrival::Lost { endpoint, status, advice, wait } => self.lose(&endpoint, &status, advice, wait),
            Arrival::Frame(frame) => {
                self.metrics.frames.inc();
                let floor = self.mirror.reached();
                match self.mirror.take(frame) {
                    Ok(effect) => self.follow(effect, floor),
                    Err(error) => {
                        let error = nimbus_core::Failure::from(error);
                        tracing::error!(agent.id = %self.settings.id, %error, "cannot understand the bus");
                        self.journal.note("BadFrame", None, &error.to_string(), Instant::now());
                        self.disconnect();
                        self.uplink.restart(self.settings.reconnect.max.mul_f64(self.rng.random()));
                    }
                }
            }
        }
    }

    fn lose(&mut self, endpoint: &str, status: &Status, advice: Advice, wait: Duration) {
        self.metrics.losses.inc();
        let (agent, reason, wait_ms) = (&self.settings.id, status.message(), wait.as_millis());
        match advice {
            Advice::Superseded => {
                tracing::error!(agent.id = %agent, endpoint, reason, wait_ms, "another agent runs under this name");
                self.journal.note("Superseded", None, reason, Instant::now());
            }
            Advice::Refused => {
                tracing::error!(agent.id = %agent, endpoint, %status, wait_ms, "the bus refuses this agent");
            }
            Advice::After(_) | Advice::Backoff => {
                tracing::info!(agent.id = %agent, endpoint, reason, wait_ms, "no subscription");
            }
        }
        self.disconnect();
    }

    fn disconnect(&mut self) {
        self.mirror.disconnect();
        self.reporter.end();
        self.reports.call.give_up();
        self.metrics.connected.set(0);
        self.alone_since.get_or_insert_with(Instant::now);
        self.link = if self.detach_at.is_some() { Link::Connecting } else { Link::Detached };
    }

    fn follow(&mut self, effect: Effect, floor: Revision) {
        let now = Instant::now();
        match effect {
            Effect::Alive => {}
            Effect::Welcome { session, mode, reason, bookmark_interval, .. } => {
                tracing::info!(agent.id = %self.settings.id, mode = mode.as_str_name(), reason, "subscribed");
                self.metrics.answers.get_or_create(&ModeLabel { mode: mode.as_str_name() }).inc();
                self.metrics.connected.set(1);
                self.alone_since = None;
                self.uplink.expect_every(bookmark_interval);
                self.reporter.begin(session);
                self.reports.begin(bookmark_interval, now);
                if mode != Mode::Delta {
                    self.board.reset_floors();
                }
                self.link = if mode == Mode::Waiting { Link::Waiting } else { Link::Syncing };
                if mode == Mode::Waiting {
                    self.release();
                }
            }
            Effect::Changes { changes, position } => {
                self.change(changes, floor, now);
                self.save_position(position, now, true);
                if position.is_some() {
                    self.settle(now);
                }
            }
            Effect::Exact { position, publishers } => {
                let age = |age: v1::PublisherAge| (age.publisher, Duration::from_millis(age.age_ms));
                self.publishers = publishers.into_iter().map(age).collect();
                self.save_position(Some(position), now, false);
                self.settle(now);
                // The watermark may have moved although nothing changed.
                self.reports.soon(now);
            }
            Effect::Mismatch { changes, mismatch } => {
                self.mismatches += 1;
                self.metrics.mismatches.inc();
                tracing::error!(agent.id = %self.settings.id, %mismatch, "holds something else than the bus, comparing everything");
                self.journal.note("DigestMismatch", None, &mismatch.to_string(), now);
                self.change(changes, floor, now);
                self.save_position(None, now, true);
                self.disconnect();
                let wait = self.settings.reconnect.delay(self.mismatched, self.rng.random());
                self.mismatched = self.mismatched.saturating_add(1);
                self.uplink.restart(wait);
            }
            Effect::ScopeChanged => {
                self.reporter.scope_changed();
                self.board.reset_floors();
                self.link = Link::Syncing;
                self.save_position(None, now, true);
            }
            Effect::ReportWanted => {
                self.reporter.want_full();
                self.reports.soon(now);
            }
            Effect::Drain { retry_after, reason } => {
                let retry_after_ms = retry_after.as_millis();
                tracing::info!(agent.id = %self.settings.id, reason, retry_after_ms, "the bus is going away");
            }
        }
    }

    /// What should be here has changed.
    fn change(&mut self, changes: Vec<Change>, floor: Revision, now: Instant) {
        if changes.is_empty() {
            return;
        }
        self.metrics.changes.inc_by(changes.len() as u64);
        let mut delta = Delta::default();
        for change in &changes {
            match change {
                Change::Put(item) => delta.puts.push(item.clone()),
                Change::Delete(key) => delta.deletes.push(key.clone()),
            }
        }
        if planted::is(Bug::SavePositionOnly) {
            delta.puts.clear();
        }
        // In one piece with the position that they lead to, or with none.
        delta.position = Some(self.mirror.position());
        self.saved = (self.mirror.position(), now);
        self.keeper.save(delta);
        self.board.change(changes, floor, now);
    }

    /// Saves the position, unless it only moved on a moment ago.
    fn save_position(&mut self, position: Option<Position>, now: Instant, at_once: bool) {
        let (saved, at) = self.saved;
        let same_line = |a: Position, b: Position| a.epoch == b.epoch && a.scope == b.scope;
        let only_moved = matches!((saved, position), (Some(a), Some(b)) if same_line(a, b));
        if saved == position || (only_moved && !at_once && now < at + SAVE_POSITION_EVERY) {
            return;
        }
        self.saved = (position, now);
        self.keeper.save(Delta { position: Some(position), ..Delta::default() });
    }

    /// It has everything.
    fn settle(&mut self, now: Instant) {
        self.link = Link::InSync;
        self.mismatched = 0;
        self.uplink.succeeded();
        self.release();
        self.report_soon(now);
    }

    /// Begins to work.
    fn release(&mut self) {
        if self.detach_at.take().is_some() {
            self.board.hold(false);
        }
    }

    fn tick(&mut self, now: Instant) {
        if self.detach_at.is_some_and(|at| at <= now) {
            let (objects, revision) = (self.mirror.len(), self.mirror.position().map(|at| at.revision.0));
            tracing::warn!(agent.id = %self.settings.id, objects, revision, "no bus has answered, applying the last good state");
            self.journal
                .note("Detached", None, &format!("applied {objects} objects without a bus"), now);
            self.release();
            if self.link == Link::Connecting {
                self.link = Link::Detached;
            }
        }
        if self.alone_since.is_some_and(|since| now >= since + ALONE_FOR_LONG) {
            tracing::warn!(agent.id = %self.settings.id, "no bus for {} s", ALONE_FOR_LONG.as_secs());
            self.alone_since = Some(now);
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Explain(key, answer) => {
                let now = Instant::now();
                let explanation = self.board.explain(&key).map(|why| Explanation {
                    sentence: why.sentence,
                    since: now.saturating_duration_since(why.since),
                    chain: why.chain,
                });
                // Whoever asked may have gone.
                drop(answer.send(explanation));
            }
            Command::SetLabels(labels) if labels != self.labels => {
                self.labels = labels;
                self.reporter.rescope(self.settings.rescope(&self.labels));
                self.reports.soon(Instant::now());
            }
            Command::SetLabels(_) => {}
            Command::Leave => {
                self.reporter.leave();
                self.reports.soon(Instant::now());
            }
        }
    }

    fn notice_disk(&mut self, health: Health) {
        match health {
            Health::Good => self.cache_failing = None,
            Health::Failing { message, .. } => {
                self.journal.note("CacheFailing", None, &message, Instant::now());
                self.cache_failing = Some(message.to_string());
            }
        }
        self.metrics.cache_failing.set(i64::from(self.cache_failing.is_some()));
        self.reports.soon(Instant::now());
    }

    /// Tells whoever looks.
    fn show(&mut self) {
        let counts = self.board.counts();
        let status = AgentStatus {
            link: self.link,
            position: self.mirror.position(),
            objects: self.mirror.len(),
            unfinished: counts.unfinished,
            failed: counts.failed,
            running: self.jobs.len(),
            mismatches: self.mismatches,
            cache_failing: self.cache_failing.clone(),
            publishers: self.publishers.clone(),
        };
        self.metrics.detached.set(i64::from(self.link == Link::Detached));
        for (gauge, value) in [
            (&self.metrics.objects, status.objects),
            (&self.metrics.applied, counts.applied),
            (&self.metrics.running, status.running),
            (&self.metrics.unfinished, counts.unfinished),
            (&self.metrics.failed, counts.failed),
        ] {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        self.status.send_if_modified(|shown| {
            let differs = *shown != status;
            if differs {
                *shown = status;
            }
            differs
        });
    }

    /// Lets handlers that run finish, tells the bus, and writes what should survive.
    async fn stop(mut self) {
        tracing::info!(agent.id = %self.settings.id, running = self.jobs.len(), "stopping");
        let deadline = Instant::now() + self.settings.grace;
        while !self.jobs.is_empty() {
            let (key, outcome) = tokio::select! {
                done = self.jobs.next() => done,
                () = sleep_until(deadline) => break,
            };
            self.finish(&key, outcome);
        }
        self.report_last().await;
        self.keeper.close().await;
    }
}
