//! Where an entry stands: ready, among the timers, or nowhere.

use std::{
    hash::{BuildHasher, Hash},
    mem,
};

use tokio::time::Instant;

use crate::queue::{Queue, slots::Slot, state::State};

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// Puts an entry where it belongs after anything has happened to it; `None` if it is gone.
    pub(crate) fn settle(&mut self, slot: Slot, now: Instant) -> Option<State> {
        let entry = &mut self.entries[slot];
        let closed = entry.group.is_some_and(|group| self.groups.is_closed(group));
        let (old, next) = (entry.state, entry.next_state(closed, now));
        let live = !entry.case.causes.is_background();
        // Whoever is ready keeps its place, unless it has become more urgent.
        if next.is_none() || old != next || (live && !entry.live && next == Some(State::Ready)) {
            self.move_to(slot, next, live, now);
        }
        if next.is_none() {
            self.remove(slot);
        }
        next
    }

    fn move_to(&mut self, slot: Slot, next: Option<State>, live: bool, now: Instant) {
        let entry = &mut self.entries[slot];
        let line = &mut self.lines[usize::from(entry.lane.0)];
        let old = entry.state;
        if let Some(old) = old {
            *line.counts.of(old) -= 1;
            match (old, old.timer()) {
                (State::Ready, _) => self.ready.remove(line.list(entry.live), slot),
                (State::Quiet { until }, _) => {
                    self.quiet.remove(&(until, slot));
                }
                (_, Some(until)) => {
                    line.timers.remove(&(until, slot));
                }
                _ => {}
            }
        }
        if let Some(next) = next {
            *line.counts.of(next) += 1;
            match (next, next.timer()) {
                (State::Ready, _) => self.ready.push(line.list(live), slot),
                (State::Quiet { until }, _) => {
                    self.quiet.insert((until, slot));
                }
                (_, Some(until)) => {
                    line.timers.insert((until, slot));
                }
                _ => {}
            }
        }
        if old.as_ref().map(mem::discriminant) != next.as_ref().map(mem::discriminant) {
            entry.since = now;
        }
        (entry.state, entry.live) = (next, live);
    }

    fn remove(&mut self, slot: Slot) {
        self.leave(slot);
        let entry = self.entries.remove(slot);
        self.lines[usize::from(entry.lane.0)].keys.remove(&entry.key);
        if self.entries.shrink() {
            self.ready.clear();
            self.members.clear();
            for line in &mut self.lines {
                line.keys.shrink_to_fit();
            }
        }
    }
}

// === impl State ===

impl State {
    /// When it ends by itself with a run.
    fn timer(self) -> Option<Instant> {
        match self {
            Self::Delayed { until } | Self::Retrying { until } | Self::Quarantined { until } => Some(until),
            Self::Waiting { until } => until,
            _ => None,
        }
    }
}
