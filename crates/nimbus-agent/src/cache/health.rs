//! Whether what is saved also gets to the disk.

use std::sync::Arc;

use tokio::time::Instant;

/// Whether what is saved also gets to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    /// It does, or there is no disk that it should get to.
    Good,
    /// It does not. Nothing is lost while the agent runs, and writing is tried again.
    Failing {
        /// Since when.
        since: Instant,
        /// Why, as of the last attempt.
        message: Arc<str>,
    },
}

/// Why something saved is not on disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CacheFailure {
    /// It will be when the disk works again.
    #[error("the memory on disk is not up to date: {0}")]
    Failing(Arc<str>),
    /// It never will be.
    #[error("the memory on disk was closed")]
    Closed,
}
