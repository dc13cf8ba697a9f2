//! For how long a shard is ours.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::CancellationToken;

/// For how long a shard is ours: ends once, and with it all that was begun for the shard. Cheap to clone and to ask,
/// because every reaction does both.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tenure(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_over: AtomicBool,
    /// For those who wait for the end.
    end: CancellationToken,
}

// === impl Tenure ===

impl Tenure {
    /// It is somebody else's from now on.
    pub(crate) fn end(&self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.end.cancel();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    /// Waits for the end.
    pub(crate) async fn over(&self) {
        self.0.end.cancelled().await;
    }
}
