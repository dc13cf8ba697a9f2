//! What runs next, and when.

use std::hash::{BuildHasher, Hash};

use tokio::time::Instant;

use crate::queue::{Queue, job::Job, lane::Line, slots::Slot};

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// The next job, if there is one and the limits allow it. It must be [finished](Queue::finish) or
    /// [abandoned](Queue::abandon).
    ///
    /// Lanes take turns. Within a lane, keys of the boot list and of a resync come after all others, except for their
    /// [share](crate::queue::Config::boot_share); those that are alike run in the order in which they became ready.
    pub fn next(&mut self, now: Instant) -> Option<Job<K>> {
        self.ring(now);
        if !self.has_room() || !self.bucket.is_free(now) {
            return None;
        }
        let (later, sooner) = (0..self.turn, self.turn..self.lines.len());
        for index in sooner.chain(later) {
            let line = &mut self.lines[index];
            if line.has_room()
                && line.bucket.is_free(now)
                && let Some(slot) = line.choose(self.config.boot_share)
            {
                self.turn = index + 1;
                line.bucket.take(now);
                self.bucket.take(now);
                return Some(self.start(slot, now));
            }
        }
        None
    }

    /// When [`Queue::next`] has something to give, if nothing else happens before; `None` if it never will. It has
    /// something at exactly this time, which may be in the past.
    pub fn deadline(&self) -> Option<Instant> {
        if !self.has_room() {
            return None;
        }
        let lanes = self.lines.iter().filter(|line| line.has_room()).filter_map(|line| {
            let ready = line.live.first().into_iter().chain(line.boot.first());
            let timer = line.timers.first().map(|(at, _)| *at);
            let due = ready.filter_map(|slot| self.entries[slot].case.due()).chain(timer).min()?;
            Some(line.bucket.free_at().map_or(due, |free_at| due.max(free_at)))
        });
        let due = lanes.min()?;
        Some(self.bucket.free_at().map_or(due, |free_at| due.max(free_at)))
    }

    /// Hands out nothing more. Jobs that are running can be finished.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether nothing is running, and nothing can begin before the [deadline](Queue::deadline), as of the last call of
    /// [`Queue::next`].
    pub fn is_idle(&self) -> bool {
        let is_waiting = |line: &Line<K, S>| !line.paused && line.counts.ready > 0;
        self.running == 0 && (self.draining || !self.lines.iter().any(is_waiting))
    }

    fn has_room(&self) -> bool {
        !self.draining && self.running < self.config.concurrency.max(1)
    }

    /// Does what is due.
    fn ring(&mut self, now: Instant) {
        for index in 0..self.lines.len() {
            while let Some((_, slot)) = self.lines[index].timers.first().copied().filter(|(at, _)| *at <= now) {
                self.settle(slot, now);
            }
        }
        while let Some((_, slot)) = self.quiet.first().copied().filter(|(at, _)| *at <= now) {
            self.settle(slot, now);
        }
    }

    fn start(&mut self, slot: Slot, now: Instant) -> Job<K> {
        let entry = &mut self.entries[slot];
        let causes = entry.case.causes;
        let due = entry.case.start(now);
        let job = Job {
            lane: entry.lane,
            key: entry.key.clone(),
            group: entry.group,
            causes,
            attempt: entry.case.attempts,
            waited: now.saturating_duration_since(due),
        };
        if let Some(group) = job.group {
            self.groups.of(group).running += 1;
        }
        self.running += 1;
        self.settle(slot, now);
        job
    }
}
