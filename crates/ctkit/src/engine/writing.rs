//! From what is to be written into the source to transactions.

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use nimbus_core::ObjectKey;
use nimbus_store::{Committed, Txn};
use rand::RngExt as _;
use tokio::time::Instant;

use crate::{
    engine::{Engine, event::Event, sending::fencing, station::StationId, tenure::Tenure},
    instances::Shard,
    source::CommitError,
};

/// Statuses have reached the source, or have not.
pub(crate) struct Written {
    station: StationId,
    shard: usize,
    result: Result<Committed, CommitError>,
    tenure: Tenure,
}

/// Transactions that a source in this process takes without a pause: reactions make less than this in one go.
const AT_ONCE: usize = 8;

// === impl Engine ===

impl Engine {
    /// Writes what is to be written; says when to look again.
    pub(crate) fn write(&mut self, now: Instant) -> Option<Instant> {
        for _ in 0..AT_ONCE {
            self.write_some(now);
            let deadline = |(station, shard): &(StationId, usize)| {
                self.stations[station.0].shards[*shard].writeback.deadline().unwrap_or(now)
            };
            match self.unwritten.iter().map(deadline).min() {
                Some(at) if at <= now => {}
                next => return next,
            }
        }
        // Others have their turn, and then there is more.
        Some(now)
    }

    fn write_some(&mut self, now: Instant) {
        for (station, shard) in std::mem::take(&mut self.unwritten) {
            // Whoever has no right to it any more is told so in a moment.
            let Some(permit) = self.shares.permit(Shard::at(shard)) else { continue };
            let at = &mut self.stations[station.0];
            let snapshot = at.snapshot();
            let find = |key: &ObjectKey| {
                let record = snapshot.get(key)?;
                let is_old = at.known.get(key).is_some_and(|known| record.revision() < known.wrote);
                Some((record, is_old))
            };
            let of = &mut at.shards[shard];
            let Some(steps) = of.writeback.next(&at.name, now, find) else {
                if of.writeback.deadline().is_some() {
                    self.unwritten.insert((station, shard));
                }
                continue;
            };
            // Leases are kept where objects come from.
            let (fence, leases) = fencing(permit, true);
            let txn = Txn { publisher: of.publisher.clone(), fence, leases, steps };
            let (mut commit, tenure) = (self.source.commit(txn), of.tenure.clone());
            // A source in this process has often done it by now.
            if let Poll::Ready(result) = commit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                self.written(Written { station, shard, result, tenure }, now);
                continue;
            }
            let runner = self.runner.clone();
            self.runner.tracker.spawn(async move {
                let result = poll_fn(|cx| commit.as_mut().poll(cx)).await;
                drop(runner.events.send(Event::Written(Written { station, shard, result, tenure })).await);
            });
        }
    }

    /// They have been written, or have not.
    pub(crate) fn written(&mut self, written: Written, now: Instant) {
        let Written { station, shard, result, tenure } = written;
        if tenure.is_over() {
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
