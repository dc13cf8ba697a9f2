//! When to kill the bus.

use std::time::Duration;

use rand::{RngExt as _, rngs::SmallRng};

/// When to kill the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// While it starts, after this part of the time that it takes.
    Start { part: u32 },
    /// While it is written to at the usual rate.
    Load { after: Duration },
    /// While it is written to as fast as it can be, so that it is always in the middle of a commit.
    Commit { after: Duration, burst: Duration },
    /// In the middle of a sync.
    Sync { after: Duration, then: Duration },
}

/// Parts of a start, in hundredths: also when it has just begun to listen.
const START_PARTS: std::ops::Range<u32> = 0..130;

// === impl Moment ===

impl Moment {
    pub(crate) const NAMES: [&str; 4] = ["starting", "under load", "in commits", "in syncs"];

    pub(crate) fn choose(rng: &mut SmallRng) -> Self {
        let mut ms = |range: std::ops::Range<u64>| Duration::from_millis(rng.random_range(range));
        let (after, burst, load) = (ms(20..300), ms(1..60), ms(50..700));
        let then = Duration::from_micros(rng.random_range(0..4000));
        match rng.random_range(0..100) {
            0..15 => Self::Start { part: rng.random_range(START_PARTS) },
            15..50 => Self::Load { after: load },
            50..80 => Self::Commit { after, burst },
            _ => Self::Sync { after, then },
        }
    }

    /// Its place in [`Moment::NAMES`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Start { .. } => 0,
            Self::Load { .. } => 1,
            Self::Commit { .. } => 2,
            Self::Sync { .. } => 3,
        }
    }
}
