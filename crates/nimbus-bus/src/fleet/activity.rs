//! Wakes those who wait for something to happen in the fleet.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts what happens. To tell costs one addition while nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    count: AtomicU64,
    waiting: Notify,
}

// === impl Activity ===

impl Activity {
    /// Something happened.
    pub(crate) fn tell(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        self.waiting.notify_waiters();
    }

    /// How much has happened. Take it before looking, and wait for more than it.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until more has happened than `seen`.
    ///
    /// # Cancel safety
    /// Nothing is lost: whoever asks again with the same number is told at once.
    pub(crate) async fn beyond(&self, seen: u64) {
        loop {
            let mut notified = std::pin::pin!(self.waiting.notified());
            // From here on a notification counts, so that nothing falls between looking and waiting.
            notified.as_mut().enable();
            if self.count() != seen {
                return;
            }
            notified.await;
        }
    }
}
