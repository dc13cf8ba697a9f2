//! How often something may be done: a number of times at once, and so many times a second.

use std::time::Duration;

use tokio::time::Instant;

/// How often something may be done.
#[derive(Debug)]
pub(crate) struct Bucket {
    capacity: u32,
    per_second: u32,
    left: u32,
    /// When it was last filled.
    filled: Instant,
}

// === impl Bucket ===

impl Bucket {
    pub(crate) fn new(capacity: u32, per_second: u32, now: Instant) -> Self {
        Self { capacity, per_second, left: capacity, filled: now }
    }

    /// Takes one. `false`: there is none.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if self.left == 0 {
            self.fill(now);
        }
        let is_enough = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_enough
    }

    /// Only whole ones, so that nothing is lost between.
    fn fill(&mut self, now: Instant) {
        let each = Duration::from_secs(1) / self.per_second;
        let more = now.saturating_duration_since(self.filled).as_nanos() / each.as_nanos();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if more >= self.capacity {
            (self.left, self.filled) = (self.capacity, now);
        } else {
            self.left += more;
            self.filled += each * more;
        }
    }
}

#[cfg(test)]
mod tests;
