//! Runs of keys that the queue does not know.

use std::hash::{BuildHasher, Hash};

use tokio::time::Instant;

use crate::queue::{Queue, cause::Cause, group::Group, lane::Lane};

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// Whether nothing that is ready waits in this lane, and no rate is to be kept: then runs of keys that have never been
    /// here can begin [apart](Self::begin_apart).
    pub(crate) fn is_free(&self, lane: Lane) -> bool {
        let line = &self.lines[usize::from(lane.0)];
        line.counts.ready == 0 && line.policy.rate.is_none() && self.config.rate.is_none()
    }

    /// Begins so many runs at most of keys that are not told, and says how many. They count as running like others; each must
    /// be [ended](Self::end_apart), or [adopted](Self::adopt) as soon as anything is to be said of its key.
    pub(crate) fn begin_apart(&mut self, lane: Lane, group: Group, most: usize) -> usize {
        let limit = self.config.concurrency.max(1);
        let line = &mut self.lines[usize::from(lane.0)];
        if self.draining || self.groups.is_closed(group) || !line.has_room() {
            return 0;
        }
        let room = (line.policy.concurrency.max(1) - line.counts.running).min(limit.saturating_sub(self.running));
        let begun = room.min(most);
        line.counts.running += begun;
        self.groups.of(group).running += begun;
        self.running += begun;
        begun
    }

    /// So many of these are over.
    pub(crate) fn end_apart(&mut self, lane: Lane, group: Group, ended: usize) {
        self.lines[usize::from(lane.0)].counts.running -= ended;
        self.groups.of(group).running -= ended;
        self.running -= ended;
    }

    /// One of these is a run of this key from now on, and like all others. The queue must not know the key.
    pub(crate) fn adopt(&mut self, lane: Lane, group: Group, key: K, cause: Cause, now: Instant) {
        self.end_apart(lane, group, 1);
        let slot = self.enter(lane, key, now);
        self.join(slot, group);
        let case = &mut self.entries[slot].case;
        debug_assert!(case.run.is_none(), "a key runs once at a time");
        case.causes.insert(cause);
        case.start(now);
        self.groups.of(group).running += 1;
        self.running += 1;
        self.settle(slot, now);
    }
}
