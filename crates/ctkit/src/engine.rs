//! The engine: one task that owns the queue and everything that is known, and loops over what can happen.

pub(crate) mod agents;
mod asking;
mod booting;
pub(crate) mod event;
mod finishing;
mod fleet;
mod flight;
pub(crate) mod flights;
mod fresh;
mod launching;
mod ledger;
mod memory;
pub(crate) mod observing;
mod planning;
pub(crate) mod publishing;
pub(crate) mod referring;
mod run;
pub(crate) mod sending;
mod sharing;
mod starting;
pub(crate) mod station;
mod sweeping;
mod tenure;
mod waking;
mod writeback;
mod writing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use nimbus_core::{Epoch, KeyHashes, KeyMap, Kind, Labels, ObjectKey, PublisherId, Revision};
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_stream::StreamExt as _;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    agents::Agents,
    event::Event,
    flight::Desk,
    flights::Flights,
    fresh::Fresh,
    ledger::SharedLedger,
    observing::Rounds,
    publishing::{Phase, Synced},
    referring::SharedReferences,
    run::{Common, Runner},
    sending::{Batch, Landed},
    station::{Shard, Station, StationId},
    tenure::Tenure,
    writeback::Writeback,
};
use crate::{
    context::Surroundings,
    controller::{Controller, ControllerError, Deletion},
    erased::{ErasedTarget, ErasedWriter},
    instances::{ShardEvents, Shares},
    plan::Planned,
    queue::{Group, Lane, Queue},
    ready::Readiness,
    reflector::{Reflector, Reflectors},
    snapshot::Snapshot,
    stage::Stage,
};

/// The engine: owns the queue and everything that is known.
pub(crate) struct Engine {
    pub(crate) source: Arc<dyn ErasedWriter>,
    pub(crate) target: Arc<dyn ErasedTarget>,
    pub(crate) reflectors: Reflectors,
    pub(crate) queue: Queue<ObjectKey, KeyHashes>,
    pub(crate) stations: Vec<Station>,
    pub(crate) shares: Shares,
    pub(crate) shard_events: ShardEvents,
    pub(crate) draining: BTreeSet<usize>,
    pub(crate) runner: Runner,
    pub(crate) events: mpsc::Receiver<Event>,
    /// Kinds that are listened to.
    pub(crate) watched: BTreeMap<Kind, Watched>,
    /// What objects were labelled that somebody refers to.
    pub(crate) labels: KeyMap<Labels>,
    /// Source and bus are the same, leases included.
    pub(crate) same: bool,
    /// Transactions that the bus has answered at once.
    pub(crate) landed_now: Vec<Landed>,
    /// Shards that are about to begin, and wait for what is still to be heard.
    pub(crate) unheard: Vec<Synced>,
    /// Shards with something to write into the source.
    pub(crate) unwritten: BTreeSet<(StationId, usize)>,
    /// Objects by the names under which their memories are kept.
    pub(crate) memories: KeyMap<(StationId, ObjectKey)>,
    pub(crate) agents: Agents,
    pub(crate) flights: Flights,
    /// When all who listen to agents look again, if they are to.
    pub(crate) sweep_at: Option<Instant>,
    pub(crate) epoch: Option<Epoch>,
    /// The last attempt to sync that had begun when it said so.
    pub(crate) met: u64,
    /// Counts attempts to sync.
    pub(crate) attempts: u64,
    pub(crate) dry_run: bool,
    pub(crate) plans: Vec<Planned>,
    pub(crate) settled: Vec<tokio::sync::oneshot::Sender<()>>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) readiness: Readiness,
    pub(crate) rng: SmallRng,
}

/// A kind that is listened to.
pub(crate) struct Watched {
    pub(crate) reflector: Reflector,
    stop: CancellationToken,
    /// Everything up to here was heard.
    pub(crate) told: Option<Revision>,
}

/// Somebody who wants to know how far some controllers are.
pub(crate) struct Listener {
    pub(crate) controllers: Vec<StationId>,
    pub(crate) told: watch::Sender<Stage>,
}

/// Events that wait for the engine. Whoever sends one more waits; nothing is lost.
pub(crate) const EVENTS: usize = 1024;

// === impl Engine ===

impl Engine {
    /// Runs until its shards are gone, which is what the end of its instance means.
    pub(crate) async fn run(&mut self) {
        for at in &mut self.stations {
            at.objects = Some(self.reflectors.get(&at.kind));
            let surroundings = Arc::new(Surroundings {
                controller: at.name.clone(),
                dry_run: self.dry_run,
                reflectors: self.reflectors.clone(),
                references: at.references.clone(),
                follows: at.follows,
            });
            let (reactor, outputs, deadline) = (at.reactor.clone(), at.outputs.clone(), at.deadline);
            let common = Arc::new(Common { reactor, surroundings, outputs, deadline });
            for (shard, of) in at.shards.iter_mut().enumerate() {
                of.desk = Some(Arc::new(Desk {
                    station: at.id,
                    shard,
                    lane: at.lane,
                    publisher: of.publisher.clone(),
                    common: common.clone(),
                    ledger: of.ledger.clone(),
                    target: self.target.clone(),
                    shares: self.shares.clone(),
                    leases_there: self.same,
                }));
            }
            at.common = Some(common);
        }
        for kind in self.kinds() {
            self.watch(&kind);
        }
        self.listen();
        loop {
            let now = Instant::now();
            let wake = self.work(now);
            let event = tokio::select! {
                biased;
                shard = self.shard_events.next() => match shard {
                    Some(event) => Event::Shard(event),
                    None => break,
                },
                Some(event) = self.events.recv() => event,
                () = sleep_until(wake) => continue,
            };
            let now = Instant::now();
            self.take(event, now);
            // What has come meanwhile is dealt with before anything is sent: many reactions make one transaction.
            let mut more = EVENTS;
            while more > 0
                && let Ok(event) = self.events.try_recv()
            {
                self.take(event, now);
                more -= 1;
            }
            // Leases are renewed in the same task: however much there is to do, it must get its turn.
            tokio::task::yield_now().await;
        }
        self.readiness.stopped();
    }

    /// Does what can be done now; says when there is more.
    fn work(&mut self, now: Instant) -> Option<Instant> {
        self.unstall(now);
        let sweeping = self.sweep(now);
        loop {
            self.start(now);
            self.flush();
            let landed = std::mem::take(&mut self.landed_now);
            if landed.is_empty() {
                break;
            }
            for landed in landed {
                self.landed(landed, now);
            }
        }
        // A bus in this process may have refused just now.
        let stalled = self.unstall(now);
        let writing = self.write(now);
        for shard in std::mem::take(&mut self.draining) {
            self.draining.insert(shard);
            self.look_for_drained_shard(shard, now);
        }
        let observing = self.observe(now);
        self.follow_references();
        self.look_for_settled();
        self.look_for_stages();
        [stalled, sweeping, writing, observing, self.queue.deadline()].into_iter().flatten().min()
    }

    fn take(&mut self, event: Event, now: Instant) {
        match event {
            Event::Woken(kind, batch, records) => {
                if let Some(watched) = self.watched.get_mut(&kind) {
                    watched.told = batch.revision.or(watched.told);
                }
                if kind == memory::kind() {
                    self.recall(&batch, &records);
                } else {
                    self.woken(&kind, &batch, records, now);
                }
                self.open_heard(now);
            }
            Event::Finished(finished) => finished.into_iter().for_each(|finished| self.finished(finished, now)),
            Event::Landed(landed) => self.landed(landed, now),
            Event::Synced(synced) => self.synced(synced, now),
            Event::Written(written) => self.written(written, now),
            Event::Target(event) => self.told(event, now),
            Event::Shard(event) => self.share(&event, now),
            Event::Observed(observed) => self.observed(observed, now),
            Event::Command(command) => self.command(command, now),
        }
    }

    /// All kinds that are listened to from the beginning.
    fn kinds(&self) -> BTreeSet<Kind> {
        let remembers = self.stations.iter().any(|at| at.remembers).then(memory::kind);
        self.stations.iter().map(|at| at.kind.clone()).chain(remembers).collect()
    }

    /// Listens to changes of a kind.
    fn watch(&mut self, kind: &Kind) {
        if self.watched.contains_key(kind) {
            return;
        }
        let stop = self.runner.abort.child_token();
        let reflector = self.reflectors.get(kind);
        let mut changes = reflector.subscribe_early();
        self.watched.insert(kind.clone(), Watched { reflector, stop: stop.clone(), told: None });
        let (events, kind) = (self.runner.events.clone(), kind.clone());
        self.runner.tracker.spawn(async move {
            loop {
                let (batch, records) = tokio::select! {
                    () = stop.cancelled() => return,
                    told = changes.next_records() => told,
                };
                if events.send(Event::Woken(kind.clone(), batch, records)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Listens to the bus.
    fn listen(&mut self) {
        let kinds = self.stations.iter().flat_map(|at| at.outputs.iter().cloned()).collect();
        let mut reports = self.target.reports(&kinds);
        let (events, stop) = (self.runner.events.clone(), self.runner.abort.clone());
        self.runner.tracker.spawn(async move {
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => return,
                    event = reports.next() => event,
                };
                let Some(event) = event else { return };
                if events.send(Event::Target(event)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Listens to kinds that somebody refers to, and to no others.
    fn follow_references(&mut self) {
        if !self.stations.iter().any(|at| at.references.has_news()) {
            return;
        }
        let mut wanted = self.kinds();
        for at in &self.stations {
            wanted.extend(at.references.lock().kinds().map(|(kind, _)| kind.clone()));
        }
        let unwanted: Vec<_> = self.watched.keys().filter(|kind| !wanted.contains(*kind)).cloned().collect();
        for kind in unwanted {
            if let Some(watched) = self.watched.remove(&kind) {
                watched.stop.cancel();
            }
        }
        for kind in wanted {
            self.watch(&kind);
        }
    }

    /// Objects of a kind as they are now, as far as they are listed.
    pub(crate) fn snapshot(&self, kind: &Kind) -> Snapshot {
        match self.watched.get(kind) {
            Some(watched) => watched.reflector.early_snapshot(),
            None => self.reflectors.snapshot(),
        }
    }

    pub(crate) fn station_of(&self, lane: Lane) -> StationId {
        let at = self.stations.iter().find(|at| at.lane == lane);
        at.expect("every lane has its controller").id
    }

    /// Adds a controller.
    pub(crate) fn add(&mut self, controller: Controller, shards: u32) {
        let (index, name) = (self.stations.len(), controller.publisher());
        let group =
            |shard: u32| Group(u16::try_from(index).unwrap_or(u16::MAX).saturating_mul(MAX_SHARDS) + shard as u16);
        let shard = |shard: u32| {
            let publisher = if shards == 1 { name.clone() } else { format!("{name}.{shard}") };
            Shard {
                publisher: PublisherId::new(&publisher).expect("the name of a controller was checked"),
                group: group(shard),
                ledger: SharedLedger::default(),
                writeback: Writeback::default(),
                desk: None,
                aloft: KeyMap::default(),
                phase: Phase::Absent,
                epoch: None,
                attempt: 0,
                broken_off: 0,
                held: false,
                is_current: false,
                tenure: Tenure::default(),
                stalled: None,
                batch: Batch::default(),
            }
        };
        let now = Instant::now();
        let shards: Vec<_> = (0..shards).map(shard).collect();
        for shard in &shards {
            self.queue.close_group(shard.group, now);
        }
        // Whoever waits for agents must still know for what after a restart.
        let remembers = controller.reactor.remembers() || controller.deletion == Deletion::AfterAgents;
        let rounds = controller.observation.map(|of| Rounds::new(of.observer, of.interval));
        self.stations.push(Station {
            id: StationId(index),
            name: name.as_str().into(),
            kind: controller.reactor.kind(),
            reactor: controller.reactor,
            objects: None,
            common: None,
            outputs: controller.outputs,
            deadline: controller.deadline,
            finalizer: controller.finalizer.map(Into::into),
            finalizes_after: controller.finalizes_after,
            deletion: controller.deletion,
            tells: controller.tells,
            follows: controller.follows,
            remembers,
            lane: self.queue.lane(controller.policy),
            known: KeyMap::default(),
            references: SharedReferences::default(),
            shards,
            news: KeyMap::default(),
            telling: KeyMap::default(),
            listens: true,
            begun: false,
            listed: false,
            fresh: Fresh::default(),
            remembered: !remembers,
            rounds,
        });
    }

    /// The controllers of these names; all, if there are none.
    pub(crate) fn named(&self, names: &[String]) -> Result<Vec<StationId>, ControllerError> {
        if names.is_empty() {
            return Ok(self.stations.iter().map(|at| at.id).collect());
        }
        let find = |name: &String| {
            let found = self.stations.iter().find(|at| *at.name == **name).map(|at| at.id);
            found.ok_or_else(|| ControllerError::NoSuchController {
                name: name.clone(),
                known: self.stations.iter().map(|at| at.name.to_string()).collect(),
            })
        };
        names.iter().map(find).collect()
    }

    pub(crate) fn fork(&mut self) -> SmallRng {
        SmallRng::from_rng(&mut self.rng)
    }

    /// Tells those who asked, if nothing is left to do.
    fn look_for_settled(&mut self) {
        if self.settled.is_empty() || !self.is_settled() {
            return;
        }
        for waiting in self.settled.drain(..) {
            // Whoever does not wait any more need not be told.
            let _ = waiting.send(());
        }
    }
}

// === impl Watched ===

impl Watched {
    /// Whether everything that it has told was heard.
    pub(crate) fn has_heard_all(&self) -> bool {
        self.told.is_some_and(|told| self.reflector.has_told_all(told))
    }
}

/// Waits until then; for ever, if there is no such time.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Shards of one controller. Enough for a hundred instances, and each costs a lease.
const MAX_SHARDS: u16 = 1024;

/// How long tasks have to end after they were told to.
pub(crate) const LAST_ORDERS: Duration = Duration::from_secs(1);

/// For whoever builds one.
pub(crate) fn runner(events: mpsc::Sender<Event>) -> Runner {
    Runner { tracker: TaskTracker::new(), abort: CancellationToken::new(), events }
}
