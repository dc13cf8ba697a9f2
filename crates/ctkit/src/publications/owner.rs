//! On whose behalf something is published.

use nimbus_core::{ObjectKey, Uid};
use nimbus_wire::v1;

/// On whose behalf something is published: one life of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Its name.
    pub(crate) key: ObjectKey,
    /// This life of it.
    pub(crate) uid: Uid,
}

// === impl Owner ===

impl Owner {
    /// Whether this is what travels with each child.
    pub(crate) fn is(&self, wire: &v1::Owner) -> bool {
        let (key, uid) = (&self.key, &self.uid);
        *wire.kind == *key.kind().as_str()
            && *wire.namespace == *key.namespace()
            && *wire.name == *key.name()
            && *wire.uid == *uid.as_str()
    }

    /// The owner as it travels with each child.
    pub(crate) fn to_wire(&self) -> v1::Owner {
        let v1::Key { kind, namespace, name } = self.key.to_wire();
        v1::Owner { kind, namespace, name, uid: self.uid.to_string() }
    }
}
