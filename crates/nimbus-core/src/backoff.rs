//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential backoff with full jitter: the n-th wait is somewhere between nothing and `base · 2ⁿ`, at most `max`.
///
/// Full jitter spreads a crowd that failed together over the whole interval, which no other variant does as well.
///
/// ```
/// # use std::time::Duration;
/// # use nimbus_core::Backoff;
/// let backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1) };
/// assert_eq!(backoff.delay(2, 0.5), Duration::from_millis(200));
/// assert_eq!(backoff.delay(60, 0.5), Duration::from_millis(500));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest first wait.
    pub base: Duration,
    /// The longest wait of all.
    pub max: Duration,
}

// === impl Backoff ===

impl Backoff {
    /// The wait after that many failed attempts, counted from 0; `random` is between 0 and 1.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let longest = self.base.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX)).min(self.max);
        longest.mul_f64(random.clamp(0.0, 1.0))
    }
}

impl Default for Backoff {
    /// From a quarter of a second up to a minute.
    fn default() -> Self {
        Self { base: Duration::from_millis(250), max: Duration::from_secs(60) }
    }
}
