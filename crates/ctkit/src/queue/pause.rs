//! Keys and lanes that are not to run for a while.

use std::hash::{BuildHasher, Hash};

use tokio::time::Instant;

use crate::queue::{Queue, lane::Lane};

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// Does not hand out this key until it is resumed. What happens to it meanwhile makes one run then. A run that has
    /// begun goes on.
    ///
    /// # Panics
    /// If the lane is of another queue.
    pub fn pause(&mut self, lane: Lane, key: &K, now: Instant) {
        let slot = self.find(lane, key).unwrap_or_else(|| self.enter(lane, key.clone(), now));
        self.entries[slot].paused = true;
        self.settle(slot, now);
    }

    /// Hands out this key again. Says whether it was paused.
    pub fn resume(&mut self, lane: Lane, key: &K, now: Instant) -> bool {
        let Some(slot) = self.find(lane, key) else { return false };
        let was_paused = std::mem::take(&mut self.entries[slot].paused);
        self.settle(slot, now);
        was_paused
    }

    /// Does not hand out any key of this lane until it is resumed.
    ///
    /// # Panics
    /// If the lane is of another queue.
    pub fn pause_lane(&mut self, lane: Lane) {
        self.lines[usize::from(lane.0)].paused = true;
    }

    /// Hands out keys of this lane again.
    ///
    /// # Panics
    /// If the lane is of another queue.
    pub fn resume_lane(&mut self, lane: Lane) {
        self.lines[usize::from(lane.0)].paused = false;
    }

    /// Whether the lane as a whole is paused.
    pub fn is_lane_paused(&self, lane: Lane) -> bool {
        self.lines.get(usize::from(lane.0)).is_some_and(|line| line.paused)
    }
}
