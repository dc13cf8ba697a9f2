//! From changes of objects to keys in the queue.

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey, Revision};
use nimbus_store::Record;
use tokio::time::Instant;

use crate::{
    engine::{
        Engine,
        publishing::Phase,
        station::{Difference, StationId, difference},
    },
    queue::Cause,
    references::Changed,
    reflector::Batch,
};

// === impl Engine ===

impl Engine {
    /// Objects of a kind have changed: those who react to them, and those who refer to them, look again.
    ///
    /// `records` are those that come from a list that has not ended, as they were read; they are not among the names.
    pub(crate) fn woken(&mut self, kind: &Kind, batch: &Batch, mut records: Vec<Arc<Record>>, now: Instant) {
        let stations: Vec<StationId> = self.stations.iter().filter(|at| at.kind == *kind).map(|at| at.id).collect();
        let is_referred_to = self.stations.iter().any(|at| !at.references.lock().is_empty());
        if is_referred_to {
            records.iter().for_each(|record| self.wake_referrers(record.key(), now));
        }
        let is_any = !records.is_empty() || !batch.keys.is_empty();
        for (index, station) in stations.iter().enumerate() {
            let is_last = index + 1 == stations.len();
            let its = if is_last { std::mem::take(&mut records) } else { records.clone() };
            for record in self.list(*station, its) {
                self.wake(*station, record.key(), true, now);
            }
            for woken in &batch.keys {
                self.wake(*station, &woken.key, woken.boot, now);
            }
            let at = &mut self.stations[station.0];
            if batch.listed.is_some() && !at.listed {
                at.listed = true;
                self.finish_list(*station, now);
            }
            let at = &mut self.stations[station.0];
            if !at.begun && (at.listed || is_any) {
                at.begun = true;
                self.open_all(*station);
            }
        }
        if is_referred_to {
            for woken in &batch.keys {
                self.wake_referrers(&woken.key, now);
            }
        }
        if batch.listed.is_some() {
            self.wake_lookers(kind, now);
        }
    }

    /// Begins all shards of a controller that can begin.
    pub(crate) fn open_all(&mut self, station: StationId) {
        for shard in 0..self.stations[station.0].shards.len() {
            self.open(station, shard);
        }
    }

    /// Looks whether a change concerns a reactor, and how.
    pub(crate) fn wake(&mut self, station: StationId, key: &ObjectKey, boot: bool, now: Instant) {
        let at = &mut self.stations[station.0];
        // From here on, the version that is being looked at is known.
        at.adopt(key, &mut self.queue, now);
        let is_shut = matches!(at.shards[at.shard_of(key)].phase, Phase::Absent | Phase::Opening);
        if is_shut && !at.known.contains_key(key) {
            // When its shard begins, everything is looked at; until then, there is nothing to be noted of this one.
            return;
        }
        let newest = at.find(key);
        let known = at.known.get_mut(key);
        let cause = match (newest, known) {
            (None, None) => {
                let shard = at.shard_of(key);
                if at.shards[shard].ledger.lock().publications.children(key).next().is_none() {
                    // It came and went, or it was forgotten long ago.
                    self.queue.forget(at.lane, key, now);
                    return;
                }
                Cause::Edited
            }
            (None, Some(_)) => Cause::Edited,
            (Some(_), None) => {
                if boot {
                    Cause::Boot
                } else {
                    Cause::Edited
                }
            }
            (Some(newest), Some(known)) => match known.seen().map(|seen| difference(seen, &newest)) {
                None if boot => Cause::Boot,
                None | Some(Difference::Intent) => Cause::Edited,
                Some(Difference::Metadata) => Cause::Touched,
                Some(Difference::None) => {
                    // Only its status is newer. The older version need not be kept for that.
                    let kept = if known.tried.is_some() { &mut known.tried } else { &mut known.acked };
                    *kept = Some(newest);
                    if known.lagging().is_none() {
                        return;
                    }
                    Cause::Requeued
                }
            },
        };
        self.enqueue(station, key.clone(), cause, now);
    }

    /// Those who refer to a kind look again. They may have read it before anybody listened, and what has ended since is
    /// not in the list.
    fn wake_lookers(&mut self, kind: &Kind, now: Instant) {
        for index in 0..self.stations.len() {
            let lookers = self.stations[index].references.lock().lookers_at(kind);
            for referrer in lookers {
                self.enqueue(StationId(index), referrer, Cause::Referent, now);
            }
        }
    }

    /// Those who refer to an object look again.
    fn wake_referrers(&mut self, referent: &ObjectKey, now: Instant) {
        let newest = self.snapshot(referent.kind()).get(referent);
        let after = newest.as_ref().map(|record| record.labels().clone());
        let before = match &after {
            Some(labels) => self.labels.insert(referent.clone(), labels.clone()),
            None => self.labels.remove(referent),
        };
        // Objects of controllers have been there since before anybody referred to them.
        let is_unsure = before.is_none() && self.stations.iter().any(|at| at.kind == *referent.kind());
        let at = newest.map_or(Revision::ZERO, |record| record.revision());
        let change = Changed { key: referent, before: before.as_ref(), after: after.as_ref(), at };
        let mut referrers = Vec::new();
        for station in &self.stations {
            let mut references = station.references.lock();
            let perhaps = if is_unsure { references.perhaps(referent) } else { Vec::new() };
            let changed = references.changed(&change, now).referrers.into_iter();
            referrers.extend(changed.chain(perhaps).map(|referrer| (station.id, referrer)));
        }
        for (station, referrer) in referrers {
            self.enqueue(station, referrer, Cause::Referent, now);
        }
    }
}
