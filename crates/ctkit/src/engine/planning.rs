//! Dry runs: everything but the effects.

use nimbus_store::Step;
use tokio::time::Instant;

use crate::{
    engine::{Engine, sending::Staged, station::StationId},
    plan::{Planned, PlannedChange},
};

// === impl Engine ===

impl Engine {
    /// Notes what a reaction would do, and leaves it at that.
    pub(crate) fn plan(&mut self, station: StationId, staged: &Staged, steps: &[Step], now: Instant) {
        let at = &mut self.stations[station.0];
        let shard = at.shard_of(&staged.key);
        at.shards[shard].ledger.lock().publications.failed(&staged.key);
        let changes = steps.iter().filter_map(PlannedChange::of).collect();
        self.plans
            .push(Planned { controller: at.name.to_string(), object: staged.key.clone(), changes });
        self.done(station, &staged.key, now);
    }
}
