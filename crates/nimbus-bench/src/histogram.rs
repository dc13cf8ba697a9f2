//! Times, counted so that millions of them take no room.

use std::time::Duration;

/// How many times were how long. A time is known to within 2 %.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

/// Each step is longer than the one before by one part in so many.
const STEPS_PER_DOUBLING: f64 = 32.0;

/// Up to 2^40 microseconds.
const STEPS: usize = 40 * 32;

// === impl Histogram ===

impl Histogram {
    pub(crate) fn add(&mut self, time: Duration) {
        let micros = time.as_secs_f64() * 1e6;
        let step = (micros.max(1.0).log2() * STEPS_PER_DOUBLING) as usize;
        self.counts[step.min(STEPS - 1)] += 1;
        self.total += 1;
        self.max = self.max.max(time);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn max(&self) -> Duration {
        self.max
    }

    /// The time that so many in a hundred are below.
    pub(crate) fn percentile(&self, percent: f64) -> Duration {
        let wanted = (self.total as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        for (step, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && *count > 0 {
                return Duration::from_secs_f64(((step as f64 + 0.5) / STEPS_PER_DOUBLING).exp2() / 1e6).min(self.max);
            }
        }
        self.max
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; STEPS], total: 0, max: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests;
