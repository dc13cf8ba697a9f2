//! How a watch is doing.

use std::{fmt, sync::Arc};

use nimbus_core::Position;

/// Counts the lists that a reflector has read, from 1.
///
/// What the current list does not name is swept. A counter does that whatever the clock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WatchEpoch(pub u64);

/// How a watch is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WatchStatus {
    /// What it does.
    pub phase: WatchPhase,
    /// The list that was read last; [`WatchEpoch::ZERO`] if there was none.
    pub epoch: WatchEpoch,
    /// How far it has read.
    pub position: Option<Position>,
    /// How many objects are known.
    pub objects: usize,
    /// How often it broke off since it last said anything.
    pub failures: u32,
    /// Why it broke off last, until it says something again.
    pub error: Option<Arc<str>>,
}

/// What a watch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WatchPhase {
    /// Nothing is known yet, or a list is being read.
    #[default]
    Listing,
    /// Follows the changes.
    Live,
    /// It broke off, and waits for the next attempt. What was known is still there.
    Waiting,
}

// === impl WatchEpoch ===

impl WatchEpoch {
    /// Before the first list.
    pub const ZERO: Self = Self(0);

    /// The list after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for WatchEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
