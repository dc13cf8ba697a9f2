//! What a reader is sent, piece by piece.

use bytes::Bytes;
use nimbus_core::{BucketSet, ScopeHash};

use crate::cursor::Mark;

/// What a reader is to be sent next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// A snapshot of these buckets begins.
    SnapshotBegin {
        /// What it covers.
        buckets: BucketSet,
        /// Objects in it.
        objects: u64,
        /// Bytes of it, nearly.
        bytes: u64,
    },
    /// An encoded frame with its prefix.
    Frame(Bytes),
    /// The snapshot is complete.
    SnapshotEnd(Mark),
    /// The group that was being sent begins again.
    Restarted,
    /// What follows is in another scope.
    ScopeChanged(ScopeHash),
}
