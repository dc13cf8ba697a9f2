//! What was published and has not reached every agent yet.

use std::collections::BTreeMap;

use nimbus_core::{ObjectKey, Revision};

use crate::engine::station::StationId;

/// What was published and has not reached every agent yet, so that its owners hear when an agent has got further.
///
/// Not everything is watched: not what every agent had applied, nor what was on the bus before. Whoever applies some of
/// that is a newcomer, or has fallen back.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    owners: BTreeMap<Revision, Vec<Owners>>,
    /// Up to here, something may not be watched.
    unwatched: Revision,
}

/// Those of a controller for whom something was published in one transaction.
#[derive(Debug)]
struct Owners {
    of: StationId,
    keys: Box<[ObjectKey]>,
}

/// Transactions that are watched until every agent has them. An agent that never gets any further must not make this grow.
const MAX: usize = 100_000;

// === impl Flights ===

impl Flights {
    /// What was published for owners, in one transaction, is on its way to agents.
    pub(crate) fn watch(&mut self, at: Revision, station: StationId, owners: Box<[ObjectKey]>) {
        self.owners.entry(at).or_default().push(Owners { of: station, keys: owners });
        while self.owners.len() > MAX
            && let Some((oldest, _)) = self.owners.pop_first()
        {
            self.disregard(oldest);
        }
    }

    /// Up to here, something is there that is not watched.
    pub(crate) fn disregard(&mut self, up_to: Revision) {
        self.unwatched = self.unwatched.max(up_to);
    }

    /// Every agent has applied everything up to here.
    pub(crate) fn arrived(&mut self, up_to: Revision) {
        if self.owners.first_key_value().is_some_and(|(oldest, _)| *oldest <= up_to) {
            self.owners = self.owners.split_off(&up_to.next());
            self.disregard(up_to);
        }
    }

    /// Whose it is that an agent has applied between these, as far as it is watched.
    pub(crate) fn between(&self, from: Revision, to: Revision) -> impl Iterator<Item = (StationId, &ObjectKey)> {
        let owners = self.owners.range(from.next()..=to).flat_map(|(_, owners)| owners);
        owners.flat_map(|Owners { of, keys }| keys.iter().map(|key| (*of, key)))
    }

    /// Whether everything is watched that was published after this.
    pub(crate) fn has_all_after(&self, from: Revision) -> bool {
        from >= self.unwatched
    }
}

#[cfg(test)]
mod tests;
