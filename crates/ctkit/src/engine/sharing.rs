//! What this instance may act on, and how it lets go of it.

use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::{
    engine::{
        Engine,
        publishing::Phase,
        station::{self, StationId, shard_of},
        writeback::Writeback,
    },
    instances::{Shard, ShardEvent},
};

// === impl Engine ===

impl Engine {
    /// What this instance may do has changed.
    pub(crate) fn share(&mut self, event: &ShardEvent, now: Instant) {
        match event {
            ShardEvent::Gained(shard, _) => {
                self.draining.remove(&shard.index());
                for index in 0..self.stations.len() {
                    self.stations[index].shards[shard.index()].held = true;
                    self.open(StationId(index), shard.index());
                }
            }
            ShardEvent::Drain(shard) => {
                for at in &mut self.stations {
                    let of = &mut at.shards[shard.index()];
                    of.held = false;
                    self.queue.close_group(of.group, now);
                }
                self.draining.insert(shard.index());
                self.look_for_drained_shard(shard.index(), now);
            }
            ShardEvent::Lost(shard) => {
                self.draining.remove(&shard.index());
                for index in 0..self.stations.len() {
                    self.lose(StationId(index), shard.index(), now);
                }
            }
        }
        self.look_for_readiness();
    }

    /// A shard is somebody else's from now on.
    pub(crate) fn lose(&mut self, station: StationId, shard: usize, now: Instant) {
        let at = &mut self.stations[station.0];
        let of = &mut at.shards[shard];
        (of.held, of.is_current) = (false, false);
        std::mem::take(&mut of.tenure).end();
        of.phase = Phase::Absent;
        of.stalled = None;
        let gone: Vec<_> = of.writeback.unforgotten().cloned().collect();
        of.ledger.lock().publications.forget_owners();
        of.writeback = Writeback::default();
        self.queue.close_group(of.group, now);
        self.queue.forget_group(of.group, now);
        self.unwritten.remove(&(station, shard));
        for staged in std::mem::take(&mut of.batch).staged {
            // It is not running any more, and nothing comes of it.
            let _ = self.queue.abandon(at.lane, &staged.key, now);
        }
        let shards = at.shards.len();
        let is_its = |key: &ObjectKey| shard_of(key, shards) == shard;
        at.news.retain(|key, _| !is_its(key));
        at.telling.retain(|key, _| !is_its(key));
        for (key, known) in &mut at.known {
            if is_its(key) {
                (known.tried, known.running) = (None, false);
                known.hold_on();
            }
        }
        self.recall_gone(station, gone);
    }

    /// A shard may be somebody else's. Everything is given up, and begins again if it is still ours after all.
    pub(crate) fn doubt(&mut self, station: StationId, shard: usize, now: Instant) {
        let held = self.stations[station.0].shards[shard].held;
        self.lose(station, shard, now);
        // If it is not ours, that will be known before it can be opened.
        self.stations[station.0].shards[shard].held = held;
        self.open(station, shard);
    }

    /// A job of this object is over: perhaps it was the last that somebody waited for.
    pub(crate) fn look_for_drained(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        if !self.draining.is_empty() {
            self.look_for_drained_shard(self.stations[station.0].shard_of(key), now);
        }
    }

    /// If nothing of a shard runs any more and all is written, it is handed over. From then on it is somebody else's.
    pub(crate) fn look_for_drained_shard(&mut self, shard: usize, now: Instant) {
        if !self.draining.contains(&shard) {
            return;
        }
        let is_done = |of: &station::Shard| self.queue.running_in(of.group) == 0 && of.writeback.is_idle();
        if self.stations.iter().all(|at| is_done(&at.shards[shard])) {
            self.draining.remove(&shard);
            for index in 0..self.stations.len() {
                self.lose(StationId(index), shard, now);
            }
            self.shard_events.drained(Shard::at(shard));
        }
    }
}
