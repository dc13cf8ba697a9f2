//! A clock that waits for nobody.

use std::time::Duration;

use tokio::time::Instant;

/// A clock that runs moves on within this time, however coarse it is.
const A_MOMENT: Duration = Duration::from_micros(50);

/// Stops the clock of this runtime, unless it is stopped already. From then on it jumps to the next timer whenever nothing
/// else is left to do.
///
/// # Panics
/// Outside of a runtime of one thread: nobody could know when nothing is left to do.
pub(crate) fn pause() {
    if !is_paused() {
        tokio::time::pause();
    }
}

/// Tokio does not say, and takes it amiss if a clock is stopped twice.
fn is_paused() -> bool {
    let before = Instant::now();
    #[allow(clippy::disallowed_methods, reason = "real time must pass here, once and hardly any")]
    std::thread::sleep(A_MOMENT);
    Instant::now() == before
}
