//! From what is to be written into the source to transactions.

use nimbus_store::{Committed, Txn};
use rand::RngExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Engine, event::Event, publishing::fencing, station::StationId},
    instances::Shard,
    source::CommitError,
};

/// Statuses have reached the source, or have not.
pub(crate) struct Written {
    station: StationId,
    shard: usize,
    result: Result<Committed, CommitError>,
    tenure: CancellationToken,
}

// === impl Engine ===

impl Engine {
    /// Writes what is to be written; says when to look again.
    pub(crate) fn write(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for (station, shard) in std::mem::take(&mut self.unwritten) {
            // Whoever has no right to it any more is told so in a moment.
            let Some(permit) = self.shares.permit(Shard::at(shard)) else { continue };
            let at = &mut self.stations[station.0];
            let snapshot = at.snapshot();
            let of = &mut at.shards[shard];
            let Some(steps) = of.writeback.next(&at.name, now, |key| snapshot.get(key)) else {
                if let Some(deadline) = of.writeback.deadline() {
                    self.unwritten.insert((station, shard));
                    next = Some(next.map_or(deadline, |next| next.min(deadline)));
                }
                continue;
            };
            // Leases are kept where objects come from.
            let (fence, leases) = fencing(permit, true);
            let txn = Txn { publisher: of.publisher.clone(), fence, leases, steps };
            let (commit, runner, tenure) = (self.source.commit(txn), self.runner.clone(), of.tenure.clone());
            self.runner.tracker.spawn(async move {
                let result = commit.await;
                drop(runner.events.send(Event::Written(Written { station, shard, result, tenure })).await);
            });
        }
        next
    }

    /// They have been written, or have not.
    pub(crate) fn written(&mut self, written: Written, now: Instant) {
        let Written { station, shard, result, tenure } = written;
        if tenure.is_cancelled() {
            return;
        }
        let at = &mut self.stations[station.0];
        let of = &mut at.shards[shard];
        match result {
            Ok(committed) => {
                for (key, revision) in of.writeback.stored(&committed.outcomes) {
                    if let Some(known) = at.known.get_mut(&key) {
                        known.wrote = revision;
                    }
                }
            }
            Err(error) => {
                tracing::debug!(publisher = %of.publisher, %error, "statuses not stored, trying again");
                of.writeback.failed(&error, now, self.rng.random());
            }
        }
        self.unwritten.insert((station, shard));
        self.look_for_drained_shard(shard, now);
    }
}
