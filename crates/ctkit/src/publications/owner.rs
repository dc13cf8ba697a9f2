//! On whose behalf something is published.

use nimbus_core::{Generation, ObjectKey, Uid};

/// On whose behalf something is published: one life of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Its name.
    pub(crate) key: ObjectKey,
    /// This life of it.
    pub(crate) uid: Uid,
    /// How often its own spec changed.
    pub(crate) generation: Generation,
}

// === impl Owner ===

impl Owner {
    /// Whether this is what travels with each child.
    pub(crate) fn is(&self, owner: &nimbus_core::Owner) -> bool {
        owner.is(&self.key, &self.uid)
    }

    /// The owner as it travels with each child.
    pub(crate) fn named(&self) -> nimbus_core::Owner {
        nimbus_core::Owner::new(self.key.clone(), self.uid.clone())
    }
}
