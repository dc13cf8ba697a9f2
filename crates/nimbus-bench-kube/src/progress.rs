//! Knows when everything was written.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use tokio::{sync::Notify, time::Instant};

/// Knows when everything was written: the children, and the statuses if there are any.
pub(crate) struct Progress {
    missing: AtomicU64,
    last: OnceLock<Instant>,
    complete: Notify,
}

// === impl Progress ===

impl Progress {
    /// Expects so many writes.
    pub(crate) fn new(writes: u64) -> Self {
        Self { missing: AtomicU64::new(writes), last: OnceLock::new(), complete: Notify::new() }
    }

    /// So many were written.
    pub(crate) fn wrote(&self, writes: u64) {
        if writes > 0 && self.missing.fetch_sub(writes, Ordering::AcqRel) == writes {
            self.last.get_or_init(Instant::now);
            self.complete.notify_one();
        }
    }

    /// Resolves with the time at which the last was written.
    pub(crate) async fn complete(&self) -> Instant {
        loop {
            if let Some(last) = self.last.get() {
                return *last;
            }
            self.complete.notified().await;
        }
    }
}
