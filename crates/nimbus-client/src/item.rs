//! An object as an agent holds it.

use std::sync::Arc;

use nimbus_core::{Digest, Generation, Invalid, Meta, ObjectKey, Revision};
use nimbus_wire::v1;

use crate::held::Held;

/// An object as an agent holds it: as it came, with the digest that the bus gave it. Shared, never changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Everything but spec and status.
    pub meta: Meta,
    /// Stands for everything in it but the revision.
    pub digest: Digest,
    /// The whole of it.
    pub object: v1::Object,
}

// === impl Item ===

impl Item {
    /// Takes an object from the bus or from disk.
    ///
    /// # Errors
    /// If a name, a label or a reference is not one.
    pub fn new(object: v1::Object, digest: Digest) -> Result<Arc<Self>, Invalid> {
        Ok(Arc::new(Self { meta: Meta::from_wire(&object)?, digest, object }))
    }

    /// Its name.
    pub fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    /// How often the spec changed.
    pub fn generation(&self) -> Generation {
        self.meta.generation
    }

    /// What it cannot be without.
    pub fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        self.meta.needs()
    }

    /// Whether it is the same, whatever the revision says: nothing has to be done to get from one to the other.
    pub fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest && self.meta.uid == other.meta.uid
    }

    /// Whether it is the same life of the name.
    pub fn is_same_life(&self, other: &Self) -> bool {
        self.meta.uid == other.meta.uid
    }
}

impl Held for Arc<Item> {
    fn read(object: v1::Object, digest: Digest) -> Result<Self, Invalid> {
        Item::new(object, digest)
    }

    fn key(&self) -> &ObjectKey {
        &self.meta.key
    }

    fn uid(&self) -> &str {
        self.meta.uid.as_str()
    }

    fn revision(&self) -> Revision {
        self.meta.revision
    }

    fn manager(&self) -> &str {
        &self.object.manager
    }

    fn digest(&self) -> Digest {
        self.digest
    }
}
