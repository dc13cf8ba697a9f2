//! On whose behalf objects exist.

use std::{fmt, sync::Arc};

use nimbus_wire::v1;

use crate::{ObjectKey, Uid};

/// On whose behalf an object exists: one life of another, by what it is called. Cheap to clone.
///
/// What comes from outside is taken as it is: nobody looks an owner up by it, and it need not be a name that objects may
/// have.
#[derive(Clone)]
pub struct Owner(Of);

#[derive(Clone)]
enum Of {
    /// An object that is known here: nothing is copied.
    Object(ObjectKey, Uid),
    Other(Arc<v1::Owner>),
}

// === impl Owner ===

impl Owner {
    /// This life of an object.
    pub fn new(key: ObjectKey, uid: Uid) -> Self {
        Self(Of::Object(key, uid))
    }

    /// Its kind, namespace and name, and which life of it, as they travel.
    pub fn texts(&self) -> [&str; 4] {
        match &self.0 {
            Of::Object(key, uid) => [key.kind().as_str(), key.namespace(), key.name(), uid.as_str()],
            Of::Other(owner) => [&owner.kind, &owner.namespace, &owner.name, &owner.uid],
        }
    }

    /// Which life of this object it is, if it is this object and that need not be made.
    pub fn life_of(&self, key: &ObjectKey) -> Option<&Uid> {
        match &self.0 {
            Of::Object(own, life) if own == key => Some(life),
            _ => None,
        }
    }

    /// Whether it is this life of this object.
    pub fn is(&self, key: &ObjectKey, uid: &Uid) -> bool {
        match &self.0 {
            Of::Object(own, life) => own == key && life == uid,
            Of::Other(_) => self.texts() == [key.kind().as_str(), key.namespace(), key.name(), uid.as_str()],
        }
    }

    /// The owner as it travels.
    pub fn to_wire(&self) -> v1::Owner {
        let [kind, namespace, name, uid] = self.texts().map(str::to_owned);
        v1::Owner { kind, namespace, name, uid }
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Of::Object(key, uid), _) => other.is(key, uid),
            (_, Of::Object(key, uid)) => self.is(key, uid),
            (Of::Other(one), Of::Other(two)) => one == two,
        }
    }
}

impl Eq for Owner {}

impl From<v1::Owner> for Owner {
    fn from(owner: v1::Owner) -> Self {
        Self(Of::Other(Arc::new(owner)))
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_wire(), f)
    }
}

#[cfg(test)]
mod tests;
