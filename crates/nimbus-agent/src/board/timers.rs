//! What is to be done later.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::board::slots::Slot;

/// What is to be done later. Nodes remember their own times, so that each can be taken back.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, Slot, Alarm)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Try again.
    Retry,
    /// Look, or heal.
    Look,
    /// A call has been running for long.
    Stuck,
}

// === impl Timers ===

impl Timers {
    /// Moves an alarm from one time to another.
    pub(crate) fn set(&mut self, slot: Slot, alarm: Alarm, from: &mut Option<Instant>, to: Option<Instant>) {
        if let Some(at) = std::mem::replace(from, to) {
            self.0.remove(&(at, slot, alarm));
        }
        if let Some(at) = to {
            self.0.insert((at, slot, alarm));
        }
    }

    /// An alarm whose time has come.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Slot, Alarm)> {
        let (at, ..) = self.0.first()?;
        if *at > now {
            return None;
        }
        self.0.pop_first().map(|(_, slot, alarm)| (slot, alarm))
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, ..)| *at)
    }
}

#[cfg(test)]
impl Timers {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
