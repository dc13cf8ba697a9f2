//! An object as an agent holds it.

use std::sync::Arc;

use nimbus_core::{Digest, Generation, Invalid, Meta, ObjectKey};
use nimbus_wire::v1;

/// An object as an agent holds it: as it came, with the digest that the bus gave it. Shared, never changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) meta: Meta,
    pub(crate) digest: Digest,
    pub(crate) object: v1::Object,
}

// === impl Item ===

impl Item {
    /// Takes an object from the bus or from disk.
    pub(crate) fn new(object: v1::Object, digest: Digest) -> Result<Arc<Self>, Invalid> {
        Ok(Arc::new(Self { meta: Meta::from_wire(&object)?, digest, object }))
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    pub(crate) fn generation(&self) -> Generation {
        self.meta.generation
    }

    /// What it cannot be without.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        self.meta.needs()
    }

    /// Whether it is the same, whatever the revision says: nothing has to be done to get from one to the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest && self.meta.uid == other.meta.uid
    }

    /// Whether it is the same life of the name.
    pub(crate) fn is_same_life(&self, other: &Self) -> bool {
        self.meta.uid == other.meta.uid
    }
}
