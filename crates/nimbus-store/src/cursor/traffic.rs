//! What a reader costs.

/// What a reader was sent, and what it was spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Objects that were put or removed.
    pub events: u64,
    /// Changes that came to nothing because there was a later one of the same object before the reader got to it.
    pub coalesced: u64,
}
