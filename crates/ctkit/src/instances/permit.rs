//! Shows that an instance may act on a shard.

use nimbus_store::Guard;

/// Shows that an instance may act on a shard, at the moment when it was asked for.
///
/// Every write that follows from it carries its guards, and the store refuses the write if the lease was lost meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Permit(Option<Guard>);

// === impl Permit ===

impl Permit {
    pub(crate) fn new(guard: Option<Guard>) -> Self {
        Self(guard)
    }

    /// What to show to the store; `None` if there are no other instances.
    pub fn guard(&self) -> Option<&Guard> {
        self.0.as_ref()
    }

    /// The leases of a transaction.
    pub fn into_guards(self) -> Vec<Guard> {
        Vec::from_iter(self.0)
    }
}
