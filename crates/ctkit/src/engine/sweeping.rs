//! From time to time, everybody who listens to agents looks again: what is summed up has changed for all.

use std::time::Duration;

use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::engine::{Engine, station::StationId};

/// Agents that come within this time make one sweep: after a restart of the bus, all of them come at once.
const LINGER: Duration = Duration::from_secs(1);

/// How much longer for each owner, so that agents that come all the time leave time for other things: one more summary
/// takes a fraction of this.
const LINGER_PER_OWNER: Duration = Duration::from_micros(200);

// === impl Engine ===

impl Engine {
    /// Something concerns the summaries of all objects, such as one more agent. Soon they are told anew, all together, so
    /// that many agents cost no more than one.
    pub(crate) fn sweep_soon(&mut self, now: Instant) {
        if self.sweep_at.is_none() {
            let listening = self.stations.iter().filter(|at| at.listens).flat_map(|at| &at.shards);
            let owners = listening.map(|of| of.ledger.lock().publications.owners().len()).sum::<usize>();
            let owners = u32::try_from(owners).unwrap_or(u32::MAX);
            self.sweep_at = Some(now + LINGER + LINGER_PER_OWNER.saturating_mul(owners));
        }
    }

    /// Tells them, if it is time; says when it will be.
    pub(crate) fn sweep(&mut self, now: Instant) -> Option<Instant> {
        if self.sweep_at? > now {
            return self.sweep_at;
        }
        self.sweep_at = None;
        for (station, owner) in self.listeners() {
            // Nobody has anything to say by himself; only the sum is another one.
            self.stations[station.0].news.entry(owner.clone()).or_default();
            self.wake_for_news(station, &owner, now);
        }
        None
    }

    /// Owners of what was published by reactors that want to hear of agents, in their order.
    pub(crate) fn listeners(&self) -> Vec<(StationId, ObjectKey)> {
        let listening = self.stations.iter().filter(|at| at.listens);
        let owners = listening.flat_map(|at| {
            let owners = at
                .shards
                .iter()
                .flat_map(|of| of.ledger.lock().publications.owners().cloned().collect::<Vec<_>>());
            owners.map(|owner| (at.id, owner))
        });
        let mut owners: Vec<_> = owners.collect();
        owners.sort_unstable();
        owners
    }
}
