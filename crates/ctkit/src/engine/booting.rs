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
    /// There is room for so many objects.
    room: usize,
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

/// A part of what is to be looked at.
#[derive(Default)]
pub(crate) struct Part {
    /// Those of which nothing is known, in their newest version.
    pub(crate) first: Vec<Arc<Record>>,
    /// Those that were read once more after somebody had looked at them.
    pub(crate) again: Vec<ObjectKey>,
    /// When they were the newest; see [`Station::edits`].
    edits: u64,
}

/// Objects that are put into the queue at once. Enough for whoever takes them out not to run dry; the others take up no
/// room there.
const PART: usize = 2048;

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
        let mut ledger = of.ledger.lock();
        ledger.publications.recover(&before);
        self.flights
            .disregard(before.iter().map(|record| record.revision()).max().unwrap_or_default());
        drop(ledger);
        let before = before.into_iter().map(|record| (record.key().clone(), record)).collect();
        let (listed, waiting) = (VecDeque::new(), KeySet::default());
        of.phase = Phase::Booting(Boot { sync, before, rest: Some(rest), listed, lists, room: 0, waiting, begun: now });
        at.make_room();
        if !lists {
            at.look_for_gone(shard, &mut self.queue, now);
        }
        self.queue.open_group(self.stations[station.0].shards[shard].group, now);
    }

    /// Objects of a list that has not ended are to be looked at, if their shards have begun to look at all of them. Gives
    /// back the others.
    pub(crate) fn list(&mut self, station: StationId, mut records: Vec<Arc<Record>>) -> Vec<Arc<Record>> {
        if records.is_empty() {
            return records;
        }
        let shards = self.stations[station.0].shards.len();
        for (shard, of) in self.stations[station.0].shards.iter_mut().enumerate() {
            let Phase::Booting(boot) = &mut of.phase else { continue };
            if !boot.lists {
                continue;
            }
            if shards == 1 {
                // Nobody need look at any of them before its turn has come.
                boot.listed.extend(records.drain(..));
            } else {
                boot.listed
                    .extend(records.extract_if(.., |record| shard_of(record.key(), shards) == shard));
            }
        }
        self.stations[station.0].make_room();
        records
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
                let at = &mut self.stations[index];
                // What can be launched is, as soon as there is room for it.
                if at.launches(self.dry_run) && self.queue.is_free(at.lane) {
                    continue;
                }
                if let Some(again) = at.feed(shard, &mut self.queue, now) {
                    fed = true;
                    for key in again {
                        self.wake(StationId(index), &key, true, now);
                    }
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

    pub(crate) fn close_if_booted(&mut self, station: StationId, shard: usize) {
        let of = &mut self.stations[station.0].shards[shard];
        if !matches!(&of.phase, Phase::Booting(boot) if boot.is_done(of.aloft.is_empty())) {
            return;
        }
        let Phase::Booting(Boot { mut sync, .. }) = std::mem::replace(&mut of.phase, Phase::Closing) else {
            return;
        };
        // What was published for objects that have failed since stays, as it is by now: they may be published again before
        // the bus hears this.
        let mut ledger = of.ledger.lock();
        let keep = if planted::is(Bug::KeepNothing) { Vec::new() } else { ledger.publications.survivors() };
        ledger.publications.expect(0);
        drop(ledger);
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
    /// Somebody will say that this one was looked at.
    pub(crate) fn expect(&mut self, key: &ObjectKey) {
        self.waiting.insert(key.clone());
    }

    /// Whether every object was looked at. Others may be in flight.
    fn is_done(&self, has_landed: bool) -> bool {
        let is_listed = !self.lists && self.rest.is_none() && self.listed.is_empty();
        is_listed && ((self.waiting.is_empty() && has_landed) || planted::is(Bug::EndSyncEarly))
    }

    /// The next objects, so many at most, and when they were the newest; see [`Station::edits`].
    fn next(
        &mut self,
        kind: &Kind,
        is_its: impl Fn(&ObjectKey) -> bool,
        most: usize,
    ) -> Option<(Vec<Arc<Record>>, u64)> {
        let Some(Rest { list, after, edits }) = &mut self.rest else {
            // They came before anything was replaced, or it does not matter what they were.
            let part = self.listed.len().min(most);
            return (part > 0).then(|| (self.listed.drain(..part).collect(), 0));
        };
        let records = list.list_after(kind, after.as_ref()).filter(|record| is_its(record.key()));
        let (part, edits): (Vec<_>, _) = (records.take(most).cloned().collect(), *edits);
        *after = part.last().map(|record| record.key().clone());
        if part.len() < most {
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
        let of = &self.shards[shard];
        let is_listed = |key: &ObjectKey| list.get(key).is_some();
        // What was listed during this attempt, and is not any more, is told of like every other change.
        let before = self.known.iter().filter(|(_, known)| known.begun != of.attempt).map(|(key, _)| key);
        let mut gone: Vec<_> = before.filter(|key| shard_of(key, shards) == shard).cloned().collect();
        gone.retain(|key| !is_listed(key));
        gone.extend(of.ledger.lock().publications.unsettled_not_in(is_listed));
        gone.sort_unstable();
        gone.dedup();
        for key in &gone {
            self.adopt(key, queue, now);
        }
        let of = &mut self.shards[shard];
        let Phase::Booting(boot) = &mut of.phase else { return };
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
        of.ledger.lock().publications.children(key).any(is_of_life)
    }

    /// Puts more of what is to be looked at into the queue, where it is almost empty. Says which objects have been read once
    /// more since they were looked at; `None` if there was nothing at all.
    fn feed(&mut self, shard: usize, queue: &mut Queue<ObjectKey, KeyHashes>, now: Instant) -> Option<Vec<ObjectKey>> {
        if queue.counts(self.lane).ready >= PART || queue.is_group_closed(self.shards[shard].group) {
            return None;
        }
        if !self.has_more_to_boot(shard) {
            return None;
        }
        let Part { first, again, edits } = self.take_part(shard, PART, queue, now);
        for record in &first {
            self.look_at_first(shard, record.key(), queue, now);
        }
        self.fresh.extend(first, edits);
        Some(again)
    }

    /// Makes room for what is to be looked at, as far as it is listed, before there is much that would have to be moved.
    fn make_room(&mut self) {
        // Shards are of much the same size.
        let each = self.snapshot().len(&self.kind).div_ceil(self.shards.len());
        let mut all = 0;
        for of in &mut self.shards {
            let Phase::Booting(boot) = &mut of.phase else { continue };
            all += each;
            // Not for every part of a list: others wait for the ledger.
            if each > boot.room + boot.room / 4 {
                boot.room = each;
                of.ledger.lock().publications.expect(each);
            }
        }
        self.known.reserve(all.saturating_sub(self.known.len()));
    }

    /// Whether there are objects that were listed and are not in the queue yet.
    pub(crate) fn has_more_to_boot(&self, shard: usize) -> bool {
        let Phase::Booting(boot) = &self.shards[shard].phase else { return false };
        boot.rest.is_some() || !boot.listed.is_empty()
    }

    /// The next objects of the list. What is known of them already is in the queue then, or need not be looked at.
    pub(crate) fn take_part(
        &mut self,
        shard: usize,
        most: usize,
        queue: &mut Queue<ObjectKey, KeyHashes>,
        now: Instant,
    ) -> Part {
        let (shards, newest) = (self.shards.len(), self.edits());
        let of = &mut self.shards[shard];
        let attempt = of.attempt;
        let Phase::Booting(boot) = &mut of.phase else { return Part::default() };
        let is_next = boot.rest.is_none();
        let Some((part, edits)) = boot.next(&self.kind, |key| shard_of(key, shards) == shard, most) else {
            return Part::default();
        };
        let (mut first, mut again) = (Vec::with_capacity(part.len()), Vec::new());
        for record in part {
            let key = record.key();
            // What had come when this began may be told of once more.
            let is_seen = |seen: Option<&Arc<Record>>| seen.is_some_and(|seen| Arc::ptr_eq(seen, &record));
            if let Some(aloft) = self.shards[shard].aloft.get(key) {
                if aloft.attempt != attempt {
                    self.adopt(key, queue, now);
                    self.look_at_first(shard, key, queue, now);
                } else if !is_seen(Some(&aloft.record)) {
                    again.push(key.clone());
                }
                continue;
            }
            let known = self.known.get(key).map(|known| (known.begun == attempt, is_seen(known.seen())));
            match known {
                None if queue.get(self.lane, key).is_some() => self.look_at_first(shard, key, queue, now),
                None if edits != newest => match self.find(key) {
                    Some(newest) => first.push(newest),
                    None => self.look_at_first(shard, key, queue, now),
                },
                None => first.push(record),
                Some((false, _)) => self.look_at_first(shard, key, queue, now),
                Some((true, is_seen)) => {
                    if queue.get(self.lane, key).is_some_and(|view| matches!(view.state, State::Running { .. }))
                        && let Phase::Booting(boot) = &mut self.shards[shard].phase
                    {
                        // Somebody was faster than the list, and is about to have looked at it.
                        boot.expect(key);
                    }
                    if is_next && !is_seen {
                        again.push(key.clone());
                    }
                }
            }
        }
        Part { first, again, edits: newest }
    }

    /// Puts an object into the queue for the first look at it.
    fn look_at_first(&mut self, shard: usize, key: &ObjectKey, queue: &mut Queue<ObjectKey, KeyHashes>, now: Instant) {
        let of = &mut self.shards[shard];
        let Phase::Booting(boot) = &mut of.phase else { return };
        boot.expect(key);
        queue.add_in(of.group, self.lane, key.clone(), Cause::Boot, now);
    }
}
