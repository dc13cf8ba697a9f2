//! Where a reader is, and what it holds there.

use nimbus_core::{Digest, Revision};

/// A revision and what a reader holds when it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The revision.
    pub revision: Revision,
    /// How many objects.
    pub objects: u64,
    /// The digest of all of them.
    pub digest: Digest,
}
