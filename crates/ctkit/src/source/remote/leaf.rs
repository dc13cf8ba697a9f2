//! What a watch keeps of an object.

use std::sync::Arc;

use nimbus_client::Held;
use nimbus_core::{Digest, Invalid, Kind, ObjectKey, Revision};
use nimbus_store::{Content, Record, Slot};
use nimbus_wire::v1;

/// An object on its way to whoever watches. What stays is its name and its digest: about two hundred bytes, however large
/// the object is. The record is with whoever watches, and nowhere else.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    key: ObjectKey,
    uid: Arc<str>,
    manager: Arc<str>,
    revision: Revision,
    digest: Digest,
    /// None if it is only kept, or cannot be read.
    pub(crate) record: Option<Arc<Record>>,
}

/// Reads an object; one that cannot be read is named in the log, and left out.
pub(crate) fn read(object: &v1::Object) -> Option<Arc<Record>> {
    match Content::from_wire(object) {
        // Which place it had within its transaction is not said.
        Ok(content) => Some(Arc::new(Record::new(content, Slot { revision: Revision(object.revision), seq: 0 }))),
        Err(error) => {
            let v1::Object { kind, namespace, name, revision, .. } = object;
            tracing::warn!(object.kind = %kind, object.namespace = %namespace, object.name = %name, revision, %error, "cannot read an object, going on without it");
            None
        }
    }
}

// === impl Leaf ===

impl Held for Leaf {
    fn read(object: v1::Object, digest: Digest) -> Result<Self, Invalid> {
        let record = read(&object);
        let key = match &record {
            Some(record) => record.key().clone(),
            None => ObjectKey::new(Kind::new(&object.kind)?, &object.namespace, &object.name)?,
        };
        let v1::Object { uid, manager, revision, .. } = object;
        Ok(Self { key, uid: uid.into(), manager: manager.into(), revision: Revision(revision), digest, record })
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
        Self { record: None, ..self.clone() }
    }
}
