//! The first look at every object of a shard, at some of them at a time.

use std::{sync::Arc, time::Duration};

use nimbus_core::{KeyHashes, KeyMap, KeySet, ObjectKey};
use nimbus_store::Record;
use tokio::time::Instant;

use crate::{
    engine::{
        Engine,
        event::Event,
        publishing::{Phase, SyncStep, Synced},
        station::{Station, StationId, shard_of},
    },
    erased::BoxSync,
    queue::{Cause, Queue, State},
    snapshot::Snapshot,
};

/// The first look at every object of a shard.
pub(crate) struct Boot {
    sync: BoxSync,
    /// What was on the bus before.
    before: KeyMap<Arc<Record>>,
    /// What is not in the queue yet.
    rest: Option<Rest>,
    /// In the queue, and not looked at yet.
    waiting: KeySet,
    begun: Instant,
}

/// The end of a list.
struct Rest {
    list: Snapshot,
    /// Where it begins: after this object.
    after: Option<ObjectKey>,
}

/// Objects that are put into the queue at once. Enough for whoever takes them out not to run dry; the others take up no
/// room there.
const PART: usize = 1024;

/// How long a sync waits for objects that fail. Most failures pass, and an object that never succeeds must not keep its kind
/// incomplete for ever.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Engine ===

impl Engine {
    /// A sync has begun: everything is to be looked at.
    pub(crate) fn boot(
        &mut self,
        station: StationId,
        shard: usize,
        before: Vec<Arc<Record>>,
        sync: BoxSync,
        now: Instant,
    ) {
        let at = &mut self.stations[station.0];
        let (list, shards) = (at.snapshot(), at.shards.len());
        let of = &mut at.shards[shard];
        of.publications.recover(&before);
        self.flights
            .disregard(before.iter().map(|record| record.revision()).max().unwrap_or_default());
        of.versions.recover(&before);
        let is_listed = |key: &ObjectKey| list.get(key).is_some();
        let mut gone: Vec<_> = at.known.keys().filter(|key| shard_of(key, shards) == shard).cloned().collect();
        gone.retain(|key| !is_listed(key));
        gone.extend(of.publications.owners_not_in(is_listed));
        gone.sort_unstable();
        gone.dedup();
        for key in &gone {
            self.queue.add_in(of.group, at.lane, key.clone(), Cause::Boot, now);
        }
        let before = before.into_iter().map(|record| (record.key().clone(), record)).collect();
        let rest = Some(Rest { list, after: None });
        of.phase = Phase::Booting(Boot { sync, before, rest, waiting: gone.into_iter().collect(), begun: now });
        self.queue.open_group(of.group, now);
    }

    /// Puts more of what is to be looked at into the queue, where it is almost empty; says whether there was any.
    pub(crate) fn feed(&mut self, now: Instant) -> bool {
        let mut fed = false;
        for index in 0..self.stations.len() {
            for shard in 0..self.stations[index].shards.len() {
                if self.stations[index].feed(shard, &mut self.queue, now) {
                    fed = true;
                    self.close_if_booted(StationId(index), shard);
                }
            }
        }
        fed
    }

    /// An object has been looked at, whatever came of it.
    pub(crate) fn looked_at(&mut self, station: StationId, key: &ObjectKey) {
        let at = &mut self.stations[station.0];
        let shard = at.shard_of(key);
        if let Phase::Booting(boot) = &mut at.shards[shard].phase
            && boot.waiting.remove(key)
        {
            self.close_if_booted(station, shard);
        }
    }

    /// Whether the end of a sync should wait for an object that has failed, and is tried again: what it led to before is not
    /// on this bus, and agents that have it would take it for deleted.
    pub(crate) fn is_missed(&self, station: StationId, key: &ObjectKey, now: Instant) -> bool {
        let at = &self.stations[station.0];
        let Phase::Booting(boot) = &at.shards[at.shard_of(key)].phase else { return false };
        now < boot.begun + PATIENCE
            && boot.waiting.contains(key)
            && self
                .remembered_children(station, key)
                .iter()
                .any(|child| !boot.before.contains_key(child))
    }

    fn close_if_booted(&mut self, station: StationId, shard: usize) {
        let of = &mut self.stations[station.0].shards[shard];
        if !matches!(&of.phase, Phase::Booting(boot) if boot.rest.is_none() && boot.waiting.is_empty()) {
            return;
        }
        let Phase::Booting(Boot { mut sync, .. }) = std::mem::replace(&mut of.phase, Phase::Closing) else {
            return;
        };
        // What was published for objects that have failed since stays, as it is by now: they may be published again before
        // the bus hears this.
        let keep = of.publications.survivors();
        let (attempt, runner) = (of.attempt, self.runner.clone());
        self.runner.tracker.spawn(async move {
            let closed = async {
                sync.keep(keep).await?;
                sync.end().await
            };
            tokio::select! {
                () = runner.abort.cancelled() => {}
                result = closed => {
                    let step = SyncStep::Closed(result);
                    drop(runner.events.send(Event::Synced(Synced { station, shard, attempt, step })).await);
                }
            }
        });
    }
}

// === impl Station ===

impl Station {
    /// The same for one shard.
    fn feed(&mut self, shard: usize, queue: &mut Queue<ObjectKey, KeyHashes>, now: Instant) -> bool {
        let shards = self.shards.len();
        let of = &mut self.shards[shard];
        let Phase::Booting(Boot { rest, waiting, .. }) = &mut of.phase else { return false };
        let Some(Rest { list, after }) = rest else { return false };
        if queue.counts(self.lane).ready >= PART || queue.is_group_closed(of.group) {
            return false;
        }
        let keys = list.list_after(&self.kind, after.as_ref()).map(|record| record.key());
        let part: Vec<_> = keys.filter(|key| shard_of(key, shards) == shard).take(PART).cloned().collect();
        *after = part.last().cloned();
        if part.len() < PART {
            *rest = None;
        }
        for key in part {
            let was_edited = self.known.get(&key).is_some_and(|known| known.begun == of.attempt);
            if !was_edited {
                waiting.insert(key.clone());
                queue.add_in(of.group, self.lane, key, Cause::Boot, now);
            } else if queue.get(self.lane, &key).is_some_and(|view| matches!(view.state, State::Running { .. })) {
                // Somebody was faster than the list, and is about to have looked at it.
                waiting.insert(key);
            }
        }
        true
    }
}
