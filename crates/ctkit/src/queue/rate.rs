//! How often something may begin.

use std::time::Duration;

use tokio::time::Instant;

use crate::queue::{LONGEST, later};

/// How often something may begin: once per interval on average, and so many at once after a pause.
///
/// ```
/// # use std::time::Duration;
/// # use ctkit::queue::Rate;
/// assert_eq!(Rate::per_second(50, 10), Rate { interval: Duration::from_millis(20), burst: 10 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The time in which one more is allowed.
    pub interval: Duration,
    /// So many may begin at once after a pause; 0 is read as 1.
    pub burst: u32,
}

/// A token bucket, kept as the time at which it will be full again. There are no fractions of tokens that could be
/// rounded, so the time of the next token is exact.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    rate: Option<Rate>,
    full_at: Option<Instant>,
}

// === impl Rate ===

impl Rate {
    /// So many per second; 0 is read as 1.
    pub fn per_second(count: u32, burst: u32) -> Self {
        Self { interval: Duration::from_secs(1) / count.max(1), burst }
    }
}

// === impl Bucket ===

impl Bucket {
    /// Full. Without a rate it always is.
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        let rate = rate.map(|rate| Rate { interval: rate.interval.min(LONGEST), ..rate });
        Self { rate, full_at: None }
    }

    /// When there is a token; `None` if there has always been one.
    pub(crate) fn free_at(&self) -> Option<Instant> {
        let rate = self.rate?;
        // A bucket that lacks all tokens but one gives that one away at once.
        self.full_at?.checked_sub(rate.interval.saturating_mul(rate.burst.max(1) - 1))
    }

    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.free_at().is_none_or(|at| at <= now)
    }

    /// Takes a token, which must be there.
    pub(crate) fn take(&mut self, now: Instant) {
        if let Some(rate) = self.rate {
            self.full_at = Some(later(self.full_at.map_or(now, |at| at.max(now)), rate.interval));
        }
    }
}
