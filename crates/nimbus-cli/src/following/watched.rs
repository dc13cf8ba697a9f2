//! What a watch keeps of an object.

use std::sync::Arc;

use nimbus_client::Held;
use nimbus_core::{Digest, Invalid, Kind, ObjectKey, Revision};
use nimbus_wire::v1;

/// An object on its way to whoever watches. What stays is its name and its digest, however large it is.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    key: ObjectKey,
    uid: Arc<str>,
    manager: Arc<str>,
    revision: Revision,
    digest: Digest,
    /// None if it is only kept.
    object: Option<Arc<v1::Object>>,
}

/// A key, if it is one.
pub(super) fn key(kind: &str, namespace: &str, name: &str) -> Option<ObjectKey> {
    ObjectKey::new(Kind::new(kind).ok()?, namespace, name).ok()
}

// === impl Watched ===

impl Watched {
    pub(super) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The object, unless it is only kept.
    pub(super) fn object(&self) -> Option<Arc<v1::Object>> {
        self.object.clone()
    }
}

impl Held for Watched {
    fn read(object: v1::Object, digest: Digest) -> Result<Self, Invalid> {
        Ok(Self {
            key: ObjectKey::new(Kind::new(&object.kind)?, &object.namespace, &object.name)?,
            uid: object.uid.as_str().into(),
            manager: object.manager.as_str().into(),
            revision: Revision(object.revision),
            digest,
            object: Some(Arc::new(object)),
        })
    }

    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn manager(&self) -> &str {
        &self.manager
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn kept(&self) -> Self {
        Self { object: None, ..self.clone() }
    }
}
