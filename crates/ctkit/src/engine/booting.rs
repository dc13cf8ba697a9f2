//! The first look at every object of a shard, at some of them at a time.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use nimbus_core::{
    KeyHashes, KeyMap, KeySet, Kind, ObjectKey, Uid,
    planted::{self, Bug},
};
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
    /// What is not in the queue yet, of what was listed before this began.
    rest: Option<Rest>,
    /// The same of what was listed since.
    listed: VecDeque<Arc<Record>>,
    /// The list has not ended.
    lists: bool,
    /// In the queue, and not looked at yet.
    waiting: KeySet,
    begun: Instant,
}

/// The end of a list.
struct Rest {
    list: Snapshot,
    /// As it was when the list was taken; see [`Station::edits`].
    edits: u64,
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
        let (edits, lists) = (at.edits(), !at.listed);
        let rest = Rest { edits, list: at.snapshot(), after: None };
        let of = &mut at.shards[shard];
        of.publications.recover(&before);
        self.flights
            .disregard(before.iter().map(|record| record.revision()).max().unwrap_or_default());
        of.versions.recover(&before);
        let before = before.into_iter().map(|record| (record.key().clone(), record)).collect();
        let (listed, waiting) = (VecDeque::new(), KeySet::default());
        of.phase = Phase::Booting(Boot { sync, before, rest: Some(rest), listed, lists, waiting, begun: now });
        if !lists {
            at.look_for_gone(shard, &mut self.queue, now);
        }
        self.queue.open_group(self.stations[station.0].shards[shard].group, now);
    }

    /// An object of a list that has not ended is to be looked at, if its shard has begun to look at all of them. Says
    /// whether this was all there is to do.
    pub(crate) fn list(&mut self, station: StationId, record: &Arc<Record>) -> bool {
        let at = &mut self.stations[station.0];
        let shard = at.shard_of(record.key());
        let of = &mut at.shards[shard];
        let Phase::Booting(boot) = &mut of.phase else { return false };
        // What is remembered of it is of before this sync.
        let was_begun = at.known.get(record.key()).is_some_and(|known| known.begun == of.attempt);
        let is_next = boot.lists && !was_begun;
        if is_next {
            boot.listed.push_back(record.clone());
        }
        is_next
    }

    /// The first list has ended: what is not in it is gone.
    pub(crate) fn finish_list(&mut self, station: StationId, now: Instant) {
        for shard in 0..self.stations[station.0].shards.len() {
            let at = &mut self.stations[station.0];
            let Phase::Booting(boot) = &mut at.shards[shard].phase else { continue };
            (boot.lists, boot.begun) = (false, now);
            at.look_for_gone(shard, &mut self.queue, now);
            self.close_if_booted(station, shard);
        }
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
        if !(boot.lists || now < boot.begun + PATIENCE) || !boot.waiting.contains(key) {
            return false;
        }
        match self.recollection(station, key) {
            Some(children) => children.iter().any(|child| !boot.before.contains_key(child)),
            // It was dealt with here, and what that led to could not be written down before the shard was lost.
            None => at.known.get(key).is_some_and(|known| known.acked.is_some()),
        }
    }

    fn close_if_booted(&mut self, station: StationId, shard: usize) {
        let of = &mut self.stations[station.0].shards[shard];
        if !matches!(&of.phase, Phase::Booting(boot) if boot.is_done()) {
            return;
        }
        let Phase::Booting(Boot { mut sync, .. }) = std::mem::replace(&mut of.phase, Phase::Closing) else {
            return;
        };
        // What was published for objects that have failed since stays, as it is by now: they may be published again before
        // the bus hears this.
        let keep = if planted::is(Bug::KeepNothing) { Vec::new() } else { of.publications.survivors() };
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

// === impl Boot ===

impl Boot {
    /// Whether every object was looked at.
    fn is_done(&self) -> bool {
        let is_listed = !self.lists && self.rest.is_none() && self.listed.is_empty();
        is_listed && (self.waiting.is_empty() || planted::is(Bug::EndSyncEarly))
    }

    /// The next objects, and when they were the newest; see [`Station::edits`].
    fn next(&mut self, kind: &Kind, is_its: impl Fn(&ObjectKey) -> bool) -> Option<(Vec<Arc<Record>>, u64)> {
        let Some(Rest { list, after, edits }) = &mut self.rest else {
            // They came before anything was replaced, or it does not matter what they were.
            let part = self.listed.len().min(PART);
            return (part > 0).then(|| (self.listed.drain(..part).collect(), 0));
        };
        let records = list.list_after(kind, after.as_ref()).filter(|record| is_its(record.key()));
        let (part, edits): (Vec<_>, _) = (records.take(PART).cloned().collect(), *edits);
        *after = part.last().map(|record| record.key().clone());
        if part.len() < PART {
            self.rest = None;
        }
        Some((part, edits))
    }
}

// === impl Station ===

impl Station {
    /// What was dealt with or published before, and is not listed, is gone: it is looked at as well.
    fn look_for_gone(&mut self, shard: usize, queue: &mut Queue<ObjectKey, KeyHashes>, now: Instant) {
        let (list, shards) = (self.snapshot(), self.shards.len());
        let of = &mut self.shards[shard];
        let Phase::Booting(boot) = &mut of.phase else { return };
        let is_listed = |key: &ObjectKey| list.get(key).is_some();
        let mut gone: Vec<_> = self.known.keys().filter(|key| shard_of(key, shards) == shard).cloned().collect();
        gone.retain(|key| !is_listed(key));
        gone.extend(of.publications.owners_not_in(is_listed));
        gone.sort_unstable();
        gone.dedup();
        for key in &gone {
            queue.add_in(of.group, self.lane, key.clone(), Cause::Boot, now);
        }
        boot.waiting.extend(gone);
    }

    /// Whether something was on the bus, when this shard began, that was published for this life of an object.
    pub(crate) fn has_found_children_of(&self, key: &ObjectKey, life: &Uid) -> bool {
        let of = &self.shards[self.shard_of(key)];
        let Phase::Booting(boot) = &of.phase else { return false };
        let is_of_life = |child: &ObjectKey| {
            let owner = boot.before.get(child).and_then(|record| record.owner());
            owner.is_some_and(|owner| owner.uid == life.as_str())
        };
        of.publications.children(key).any(is_of_life)
    }

    /// The same for one shard.
    fn feed(&mut self, shard: usize, queue: &mut Queue<ObjectKey, KeyHashes>, now: Instant) -> bool {
        let shards = self.shards.len();
        let of = &mut self.shards[shard];
        let Phase::Booting(boot) = &mut of.phase else { return false };
        if queue.counts(self.lane).ready >= PART || queue.is_group_closed(of.group) {
            return false;
        }
        let Some((part, edits)) = boot.next(&self.kind, |key| shard_of(key, shards) == shard) else { return false };
        let mut fresh = Vec::with_capacity(part.len());
        for record in part {
            let key = record.key();
            let was_edited = self.known.get(key).is_some_and(|known| known.begun == of.attempt);
            if !was_edited {
                boot.waiting.insert(key.clone());
                queue.add_in(of.group, self.lane, key.clone(), Cause::Boot, now);
                fresh.push(record);
            } else if queue.get(self.lane, key).is_some_and(|view| matches!(view.state, State::Running { .. })) {
                // Somebody was faster than the list, and is about to have looked at it.
                boot.waiting.insert(key.clone());
            }
        }
        self.fresh.extend(fresh, edits);
        true
    }
}
