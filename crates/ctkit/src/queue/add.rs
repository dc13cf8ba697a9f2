//! How keys come into the queue, and leave it.

use std::{
    collections::hash_map,
    hash::{BuildHasher, Hash},
    time::Duration,
};

use tokio::time::Instant;

use crate::queue::{Queue, cause::Cause, entry::Entry, group::Group, lane::Lane, slots::Slot};

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// Something has happened to a key: it should run, once, however often this is said before it does.
    ///
    /// # Panics
    /// If the lane is of another queue.
    pub fn add(&mut self, lane: Lane, key: K, cause: Cause, now: Instant) {
        let slot = self.enter(lane, key, now);
        self.wake(slot, cause, now);
    }

    /// The same for a key of a group. A key is in the group that was said last.
    ///
    /// # Panics
    /// If the lane is of another queue.
    pub fn add_in(&mut self, group: Group, lane: Lane, key: K, cause: Cause, now: Instant) {
        let slot = self.enter(lane, key, now);
        self.join(slot, group);
        self.wake(slot, cause, now);
    }

    /// The key should run after a while. If it does so earlier for any reason, that is the run, and this is forgotten.
    ///
    /// # Panics
    /// If the lane is of another queue.
    pub fn add_after(&mut self, lane: Lane, key: K, delay: Duration, now: Instant) {
        let slot = self.enter(lane, key, now);
        self.entries[slot].case.wake_after(delay, now);
        self.settle(slot, now);
    }

    /// Forgets all about a key, its pause included. If it is running, nothing comes of how that ends.
    pub fn forget(&mut self, lane: Lane, key: &K, now: Instant) {
        if let Some(slot) = self.find(lane, key) {
            self.forget_slot(slot, now);
        }
    }

    pub(crate) fn forget_slot(&mut self, slot: Slot, now: Instant) {
        let entry = &mut self.entries[slot];
        entry.paused = false;
        entry.case.forget();
        self.settle(slot, now);
    }

    /// The entry of a key, made if there is none. It must be settled afterwards.
    pub(crate) fn enter(&mut self, lane: Lane, key: K, now: Instant) -> Slot {
        match self.lines[usize::from(lane.0)].keys.entry(key) {
            hash_map::Entry::Occupied(known) => *known.get(),
            hash_map::Entry::Vacant(new) => {
                let slot = self.entries.insert(Entry::new(new.key().clone(), lane, now));
                *new.insert(slot)
            }
        }
    }

    fn wake(&mut self, slot: Slot, cause: Cause, now: Instant) {
        let entry = &mut self.entries[slot];
        let debounce = self.lines[usize::from(entry.lane.0)].policy.debounce;
        entry.case.wake(cause, debounce, now);
        self.settle(slot, now);
    }
}
