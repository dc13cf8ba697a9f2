//! The time that passes outside.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since some moment, as the kernel has it. In a process with a simulation in it, the clock of the standard
/// library stands still.
pub fn real_clock() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
