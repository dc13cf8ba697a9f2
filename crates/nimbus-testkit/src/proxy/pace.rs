//! When bytes that were sent now arrive.

use std::time::Duration;

use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::Instant;

use crate::proxy::line::Line;

/// One direction of a connection, as far as time is concerned.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the line has room for more.
    free: Option<Instant>,
    /// When the last piece arrives.
    last: Option<Instant>,
    rng: SmallRng,
}

// === impl Pace ===

impl Pace {
    pub(crate) fn new(rng: SmallRng) -> Self {
        Self { free: None, last: None, rng }
    }

    /// When so many bytes arrive that are sent now, after all before them.
    pub(crate) fn arrival(&mut self, bytes: usize, line: &Line, now: Instant) -> Instant {
        let begin = self.free.map_or(now, |free| free.max(now));
        let takes = line
            .rate
            .map_or(Duration::ZERO, |rate| Duration::from_secs_f64(bytes as f64 / rate.get() as f64));
        self.free = Some(begin + takes);
        let due = begin + takes + line.delay + line.jitter.mul_f64(self.rng.random());
        let arrives = self.last.map_or(due, |last| last.max(due));
        self.last = Some(arrives);
        arrives
    }
}
