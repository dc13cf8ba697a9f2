//! First looks that need no place in the queue.

use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::{
    engine::{
        Engine,
        booting::Part,
        flight::Flight,
        starting::CHUNK,
        station::{Aloft, Station, StationId},
    },
    instances::Shard,
    queue::Cause,
};

// === impl Engine ===

impl Engine {
    /// Starts first reactions straight from the list, as many as may run, where nobody waits for anything else. Says whether
    /// there were any to be started.
    pub(crate) fn launch(&mut self, now: Instant) -> bool {
        let mut launched = false;
        for index in 0..self.stations.len() {
            for shard in 0..self.stations[index].shards.len() {
                launched |= self.launch_of(StationId(index), shard, now);
            }
        }
        launched
    }

    fn launch_of(&mut self, station: StationId, shard: usize, now: Instant) -> bool {
        let at = &mut self.stations[station.0];
        if !at.launches(self.dry_run) || !at.has_more_to_boot(shard) || !self.queue.is_free(at.lane) {
            return false;
        }
        // Whoever has no right to it any more is told so in a moment.
        if self.shares.permit(Shard::at(shard)).is_none() {
            return false;
        }
        let (lane, group) = (at.lane, at.shards[shard].group);
        let room = self.queue.begin_apart(lane, group, CHUNK);
        if room == 0 {
            return false;
        }
        let Part { mut first, again, .. } = at.take_part(shard, room, &mut self.queue, now);
        let of = &mut at.shards[shard];
        first.retain(|record| {
            let aloft = Aloft { record: record.clone(), attempt: of.attempt };
            of.aloft.insert(record.key().clone(), aloft).is_none()
        });
        self.queue.end_apart(lane, group, room - first.len());
        let any = !first.is_empty();
        if any {
            let (desk, tenure) = (of.desk().clone(), of.tenure.clone());
            self.runner.fly(Flight { desk, tenure, records: first });
        }
        for key in again {
            self.wake(station, &key, true, now);
        }
        self.close_if_booted(station, shard);
        true
    }

    /// Something has happened to an object: it should be looked at.
    pub(crate) fn enqueue(&mut self, station: StationId, key: ObjectKey, cause: Cause, now: Instant) {
        let at = &mut self.stations[station.0];
        at.adopt(&key, &mut self.queue, now);
        self.queue.add_in(at.group_of(&key), at.lane, key, cause, now);
    }

    /// Something is to be said of an object that may be in flight: then its flight becomes a run like others.
    pub(crate) fn adopt(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        self.stations[station.0].adopt(key, &mut self.queue, now);
    }

    /// The same for all that are in flight.
    pub(crate) fn adopt_all(&mut self, now: Instant) {
        for at in &mut self.stations {
            let aloft: Vec<_> = at.shards.iter().flat_map(|of| of.aloft.keys().cloned()).collect();
            for key in aloft {
                at.adopt(&key, &mut self.queue, now);
            }
        }
    }
}

// === impl Station ===

impl Station {
    /// Whether first looks need nothing but a call of the reactor.
    pub(crate) fn launches(&self, dry_run: bool) -> bool {
        !dry_run && self.rounds.is_none() && self.finalizer.is_none()
    }
}
