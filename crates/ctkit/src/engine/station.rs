//! One controller, as the engine keeps it.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use nimbus_core::{AgentId, Epoch, KeyHashes, KeyMap, Kind, ObjectKey, PublisherId, Revision};
use nimbus_store::Record;
use tokio::time::Instant;

use crate::{
    context::Surroundings,
    controller::Deletion,
    engine::{
        flight::Desk, fresh::Fresh, ledger::SharedLedger, observing::Rounds, publishing::Phase,
        referring::SharedReferences, run::Common, sending::Batch, tenure::Tenure, writeback::Writeback,
    },
    queue::{Cause, Group, Lane, Queue},
    reactor::ErasedReactor,
    reflector::Reflector,
    snapshot::Snapshot,
};

/// Names a controller within an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StationId(pub(crate) usize);

/// One controller, as the engine keeps it.
pub(crate) struct Station {
    pub(crate) id: StationId,
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) reactor: Arc<dyn ErasedReactor>,
    /// Its objects; there as soon as the engine runs.
    pub(crate) objects: Option<Reflector>,
    /// Of its reactions; there as soon as the engine runs.
    pub(crate) common: Option<Arc<Common>>,
    /// What it publishes.
    pub(crate) outputs: BTreeSet<Kind>,
    pub(crate) deadline: Duration,
    pub(crate) finalizer: Option<Arc<str>>,
    /// Those who finish with an object before this one begins to.
    pub(crate) finalizes_after: BTreeSet<String>,
    pub(crate) deletion: Deletion,
    /// The kit says in the status how an object fares.
    pub(crate) tells: bool,
    /// What objects refer to by themselves wakes their reactor.
    pub(crate) follows: bool,
    pub(crate) remembers: bool,
    pub(crate) lane: Lane,
    pub(crate) known: KeyMap<Known>,
    pub(crate) references: SharedReferences,
    pub(crate) shards: Vec<Shard>,
    /// Agents with something new to say, by the object that it is about.
    pub(crate) news: KeyMap<HashSet<AgentId>>,
    /// The same as it is being told.
    pub(crate) telling: KeyMap<HashSet<AgentId>>,
    /// The reactor wants to hear of agents, as far as one can tell.
    pub(crate) listens: bool,
    /// The first list of its kind has begun.
    pub(crate) begun: bool,
    /// All objects of its kind have been listed once.
    pub(crate) listed: bool,
    /// Those that were put into the queue last, as they were read.
    pub(crate) fresh: Fresh,
    /// What was dealt with before this process has been read.
    pub(crate) remembered: bool,
    pub(crate) rounds: Option<Rounds>,
}

/// What the engine knows of one object.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The version that the reactor last returned `Ok` for, and that was published.
    pub(crate) acked: Option<Arc<Record>>,
    /// A version that was tried since.
    pub(crate) tried: Option<Arc<Record>>,
    /// Counts reactions, so that whoever looked at the world meanwhile can be told apart.
    pub(crate) round: u32,
    /// During which attempt to sync it was last looked at.
    pub(crate) begun: u64,
    /// The kit has written its status at this revision: what is older is not read again.
    pub(crate) wrote: Revision,
    /// A reaction is under way; kept for the sake of observers, and only if there are any.
    pub(crate) running: bool,
    /// Few objects have any of this, and there are very many objects.
    waits: Option<Box<Waits>>,
}

/// What an object waits for.
#[derive(Debug, Default)]
struct Waits {
    /// Until what was written can be read, since then; and whether another run had been asked for.
    lagging: Option<(Instant, bool)>,
    /// It was withdrawn, and waits until agents have let go of it.
    letting_go: Option<Vec<ObjectKey>>,
}

/// A part of the objects of a controller, published under a name of its own.
pub(crate) struct Shard {
    pub(crate) publisher: PublisherId,
    pub(crate) group: Group,
    pub(crate) ledger: SharedLedger,
    pub(crate) writeback: Writeback,
    /// Where its reactions publish; there as soon as the engine runs.
    pub(crate) desk: Option<Arc<Desk>>,
    /// Objects that are looked at for the first time, outside of the queue: see [`Flight`](crate::engine::flight::Flight).
    pub(crate) aloft: KeyMap<Aloft>,
    pub(crate) phase: Phase,
    /// Which bus was told everything, by the last sync that has ended.
    pub(crate) epoch: Option<Epoch>,
    /// Which attempt to sync counts.
    pub(crate) attempt: u64,
    /// So many syncs in a row were begun and did not get to their end.
    pub(crate) broken_off: u32,
    /// This instance may begin something for its objects.
    pub(crate) held: bool,
    /// What is known of the source is at least what the last one knew who had the shard.
    pub(crate) is_current: bool,
    /// Ends when it is somebody else's; with it ends all that was begun before.
    pub(crate) tenure: Tenure,
    /// The bus takes nothing: when to try again, and how often it was tried.
    pub(crate) stalled: Option<(Instant, u32)>,
    /// The transaction that is being put together.
    pub(crate) batch: Batch,
}

/// An object that is looked at for the first time.
pub(crate) struct Aloft {
    pub(crate) record: Arc<Record>,
    /// The attempt to sync during which that began.
    pub(crate) attempt: u64,
}

/// How two versions of an object differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Difference {
    /// In nothing that a reactor looks at.
    None,
    /// In labels and the like.
    Metadata,
    /// In what should be true.
    Intent,
}

// === impl Station ===

impl Station {
    /// Its objects as they are now, as far as they are listed.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.objects.as_ref().expect("the engine runs").early_snapshot()
    }

    /// How often something in what [`Self::snapshot`] gives was replaced or taken away.
    pub(crate) fn edits(&self) -> u64 {
        self.objects.as_ref().expect("the engine runs").edits()
    }

    pub(crate) fn common(&self) -> Arc<Common> {
        self.common.clone().expect("the engine runs")
    }

    pub(crate) fn surroundings(&self) -> Arc<Surroundings> {
        self.common().surroundings.clone()
    }

    /// One of its objects as it is now, for the first look at it: most were read a moment ago.
    pub(crate) fn find_fresh(&mut self, key: &ObjectKey) -> Option<Arc<Record>> {
        let edits = self.edits();
        self.fresh.take(key, edits).or_else(|| self.find(key))
    }

    /// One of its objects as it is now.
    pub(crate) fn find(&self, key: &ObjectKey) -> Option<Arc<Record>> {
        self.objects.as_ref().expect("the engine runs").find(key)
    }

    /// The shard of an object.
    pub(crate) fn shard_of(&self, key: &ObjectKey) -> usize {
        shard_of(key, self.shards.len())
    }

    pub(crate) fn group_of(&self, key: &ObjectKey) -> Group {
        self.shards[self.shard_of(key)].group
    }

    /// What was in flight is over; says during which attempt to sync it began. `None` if it was not in flight.
    pub(crate) fn land(&mut self, key: &ObjectKey, queue: &mut Queue<ObjectKey, KeyHashes>) -> Option<u64> {
        let shard = self.shard_of(key);
        let of = &mut self.shards[shard];
        let aloft = of.aloft.remove(key)?;
        queue.end_apart(self.lane, of.group, 1);
        Some(aloft.attempt)
    }

    /// Something is to be said of an object that may be in flight: then its flight becomes a run like others.
    pub(crate) fn adopt(&mut self, key: &ObjectKey, queue: &mut Queue<ObjectKey, KeyHashes>, now: Instant) {
        let shard = self.shard_of(key);
        let of = &mut self.shards[shard];
        if of.aloft.is_empty() {
            return;
        }
        let Some(Aloft { record, attempt }) = of.aloft.remove(key) else { return };
        queue.adopt(self.lane, of.group, key.clone(), Cause::Boot, now);
        if let Phase::Booting(boot) = &mut of.phase {
            boot.expect(key);
        }
        let known = self.known.entry(key.clone()).or_default();
        (known.round, known.begun, known.tried) = (known.round.wrapping_add(1), attempt, Some(record));
    }
}

// === impl Shard ===

impl Shard {
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        self.desk.as_ref().expect("the engine runs")
    }

    /// Whether its objects may be reacted to, unless the bus takes nothing.
    pub(crate) fn may_run(&self) -> bool {
        self.held && matches!(self.phase, Phase::Booting(_) | Phase::Closing | Phase::Live)
    }

    /// Whether the bus of this epoch has everything.
    pub(crate) fn is_in_step_with(&self, epoch: Epoch) -> bool {
        matches!(self.phase, Phase::Live) && self.epoch == Some(epoch)
    }

    /// Whether it has told everything to a bus, and not to this one. A sync that has not ended needs no looking after: it
    /// breaks off with its bus.
    pub(crate) fn has_told_another(&self, epoch: Epoch) -> bool {
        matches!(self.phase, Phase::Live) && self.epoch.is_some_and(|told| told != epoch)
    }
}

// === impl Known ===

impl Known {
    /// The newest version that a reactor was called with.
    pub(crate) fn seen(&self) -> Option<&Arc<Record>> {
        self.tried.as_ref().or(self.acked.as_ref())
    }

    /// Since when it waits until what was written can be read.
    pub(crate) fn lagging(&self) -> Option<Instant> {
        self.waits.as_ref()?.lagging.map(|(since, _)| since)
    }

    /// It waits until what was written can be read; says since when.
    pub(crate) fn lag(&mut self, now: Instant, was_requeued: bool) -> Instant {
        self.waits.get_or_insert_default().lagging.get_or_insert((now, was_requeued)).0
    }

    /// It can be read. Says whether it was waited for, and nobody had asked for another run.
    pub(crate) fn caught_up(&mut self) -> bool {
        let lagging = self.waits.as_mut().and_then(|waits| waits.lagging.take());
        lagging.is_some_and(|(_, was_requeued)| !was_requeued)
    }

    /// What was withdrawn for it, as long as it waits until agents have let go of that.
    pub(crate) fn letting_go(&self) -> Option<&[ObjectKey]> {
        self.waits.as_ref()?.letting_go.as_deref()
    }

    /// It waits until agents have let go of these.
    pub(crate) fn let_go(&mut self, children: Vec<ObjectKey>) {
        self.waits.get_or_insert_default().letting_go = Some(children);
    }

    /// It waits for nobody's agents.
    pub(crate) fn hold_on(&mut self) {
        if let Some(waits) = &mut self.waits {
            waits.letting_go = None;
        }
    }
}

/// The shard of an object, of so many.
pub(crate) fn shard_of(key: &ObjectKey, shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    crate::instances::Shard::of(key, u32::try_from(shards).unwrap_or(u32::MAX)).index()
}

/// How a version differs from an older one.
pub(crate) fn difference(old: &Record, new: &Record) -> Difference {
    let intent = !old.has_life_of(new)
        || old.generation() != new.generation()
        || old.is_deleting() != new.is_deleting()
        || !old.has_spec_of(new);
    if intent {
        return Difference::Intent;
    }
    let metadata = old.labels() != new.labels()
        || old.refs() != new.refs()
        || old.audience() != new.audience()
        || old.owner() != new.owner()
        || old.annotations() != new.annotations();
    if metadata { Difference::Metadata } else { Difference::None }
}
