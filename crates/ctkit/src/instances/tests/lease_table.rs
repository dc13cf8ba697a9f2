//! A naive lease table that watches who believes to hold what.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nimbus_store::Guard;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Acquired, Held, Shard, Shares, instances::lease_names::LeaseNames};

/// A naive lease table that watches who believes to hold what.
#[derive(Default)]
pub(crate) struct LeaseTable(Mutex<State>);

#[derive(Default)]
struct State {
    leases: BTreeMap<Arc<str>, Entry>,
    tokens: BTreeMap<Arc<str>, u64>,
    witnesses: BTreeMap<String, Shares>,
    violations: Vec<String>,
    grants: usize,
}

struct Entry {
    holder: Arc<str>,
    token: u64,
    ttl: Duration,
    ends_at: Instant,
}

/// The controller in all tests.
pub(crate) const CONTROLLER: &str = "policies";

// === impl LeaseTable ===

impl LeaseTable {
    /// From here on, this instance must not believe to hold what another one is given.
    pub(crate) fn witness(&self, instance: &str, shares: Shares) {
        self.0.lock().witnesses.insert(instance.into(), shares);
    }

    pub(crate) fn forget(&self, instance: &str) {
        self.0.lock().witnesses.remove(instance);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.0.lock().violations.clone()
    }

    /// Shards that were given to somebody.
    pub(crate) fn grants(&self) -> usize {
        self.0.lock().grants
    }

    pub(crate) fn accepts(&self, guard: &Guard) -> bool {
        self.0.lock().live(&guard.lease).is_some_and(|entry| entry.token == guard.token)
    }

    /// Who holds a shard, and with which token.
    pub(crate) fn holder(&self, shard: Shard) -> Option<(Arc<str>, u64)> {
        let name = LeaseNames::new(CONTROLLER).shard(shard);
        self.0.lock().live(&name).map(|entry| (entry.holder.clone(), entry.token))
    }

    pub(crate) fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Acquired {
        let mut state = self.0.lock();
        let (name, ends_at): (Arc<str>, _) = (name.into(), Instant::now() + ttl);
        match state.live(&name) {
            Some(entry) if *entry.holder == *holder => entry.ends_at = ends_at,
            Some(_) => {}
            None => {
                let last = state.tokens.entry(name.clone()).or_default();
                *last += 1;
                let entry = Entry { holder: holder.into(), token: *last, ttl, ends_at };
                state.leases.insert(name.clone(), entry);
                state.grants += usize::from(name.contains(".shard-"));
                state.audit(&name, Some(holder));
            }
        }
        let lease = state.live(&name).expect("somebody holds it now").show(&name);
        Acquired { granted: *lease.holder == *holder, lease }
    }

    pub(crate) fn renew(&self, held: &[Guard]) -> Vec<Arc<str>> {
        let mut state = self.0.lock();
        let mut lost = Vec::new();
        for guard in held {
            match state.live(&guard.lease) {
                Some(entry) if entry.token == guard.token => entry.ends_at = Instant::now() + entry.ttl,
                _ => lost.push(guard.lease.clone()),
            }
        }
        lost
    }

    pub(crate) fn release(&self, held: &[Guard]) {
        let mut state = self.0.lock();
        for guard in held {
            if state.live(&guard.lease).is_some_and(|entry| entry.token == guard.token) {
                state.leases.remove(&guard.lease);
                state.audit(&guard.lease, None);
            }
        }
    }

    pub(crate) fn list(&self, prefix: &str) -> Vec<Held> {
        let state = self.0.lock();
        let live = state.leases.iter().filter(|(name, entry)| name.starts_with(prefix) && entry.is_live());
        live.map(|(name, entry)| entry.show(name)).collect()
    }
}

// === impl State ===

impl State {
    fn live(&mut self, name: &str) -> Option<&mut Entry> {
        self.leases.get_mut(name).filter(|entry| entry.is_live())
    }

    /// At the instant when a shard changes hands, nobody else may believe to have it.
    fn audit(&mut self, name: &str, holder: Option<&str>) {
        let Some((_, index)) = name.rsplit_once(".shard-") else { return };
        let shard = Shard::new(index.parse().unwrap());
        for (witness, shares) in &self.witnesses {
            if Some(witness.as_str()) != holder && shares.permit(shard).is_some() {
                self.violations
                    .push(format!("{witness} believes to hold shard {shard}, which went to {holder:?}"));
            }
        }
    }
}

// === impl Entry ===

impl Entry {
    fn is_live(&self) -> bool {
        Instant::now() < self.ends_at
    }

    fn show(&self, name: &Arc<str>) -> Held {
        let expires_in = self.ends_at - Instant::now();
        Held { name: name.clone(), holder: self.holder.clone(), token: self.token, expires_in }
    }
}
