//! Keys that share a policy.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasher, Hash},
};

use tokio::time::Instant;

use crate::queue::{counts::Counts, links::List, policy::Policy, rate::Bucket, slots::Slot};

/// Keys that share a policy: those of one kind, or of one controller. Made by [`Queue::lane`](crate::queue::Queue::lane).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub(crate) u16);

/// Everything that stands in one lane.
#[derive(Debug)]
pub(crate) struct Line<K, S> {
    pub(crate) policy: Policy,
    pub(crate) keys: HashMap<K, Slot, S>,
    /// Ready, and somebody waits for it.
    pub(crate) live: List,
    /// Ready, and nobody waits for it: boot list and resync.
    pub(crate) boot: List,
    pub(crate) timers: BTreeSet<(Instant, Slot)>,
    pub(crate) bucket: Bucket,
    pub(crate) paused: bool,
    pub(crate) counts: Counts,
    /// Live ones that were taken in a row while others waited.
    streak: u32,
}

// === impl Line ===

impl<K: Eq + Hash, S: BuildHasher + Default> Line<K, S> {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            keys: HashMap::default(),
            live: List::default(),
            boot: List::default(),
            timers: BTreeSet::new(),
            bucket: Bucket::new(policy.rate),
            paused: false,
            counts: Counts::default(),
            streak: 0,
            policy,
        }
    }
}

impl<K, S> Line<K, S> {
    /// Whether something of this lane could begin if it were ready and the rate allowed it.
    pub(crate) fn has_room(&self) -> bool {
        !self.paused && self.counts.running < self.policy.concurrency.max(1)
    }

    /// The next that is ready. `share` is how often one of the boot list must be.
    pub(crate) fn choose(&mut self, share: u32) -> Option<Slot> {
        match (self.live.first(), self.boot.first()) {
            (Some(live), Some(_)) if self.streak.saturating_add(1) < share => {
                self.streak += 1;
                Some(live)
            }
            (None, None) => None,
            (live, boot) => {
                self.streak = 0;
                boot.or(live)
            }
        }
    }

    /// The list for those that are live, or not.
    pub(crate) fn list(&mut self, live: bool) -> &mut List {
        if live { &mut self.live } else { &mut self.boot }
    }
}
