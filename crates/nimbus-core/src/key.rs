//! Kinds, object keys and references.

use std::{borrow::Borrow, fmt, sync::Arc};

use nimbus_wire::v1;

use crate::id::{Invalid, check_name};

/// Protobuf sets no limit; nobody needs more.
const MAX_KIND: usize = 253;

/// A protobuf message type, by its full name (`demo.v1.NetworkPolicy`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(Arc<str>);

/// The name of an object: kind, namespace (may be empty) and name.
///
/// Cheap to clone; ordered by kind, then namespace, then name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<Parts>);

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    kind: Kind,
    namespace: Box<str>,
    name: Box<str>,
}

/// What an object needs. A weak reference orders nothing and holds nothing back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The referent.
    pub to: ObjectKey,
    /// Whether it is only informative.
    pub weak: bool,
}

// === impl Kind ===

impl Kind {
    /// Checks and takes the full name of a message.
    ///
    /// # Errors
    /// If it is not identifiers joined by dots.
    pub fn new(value: &str) -> Result<Self, Invalid> {
        let is_ident = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if value.len() > MAX_KIND || !value.split('.').all(is_ident) {
            return Err(Invalid::new("kind", value, "the full name of a protobuf message, such as demo.v1.Policy"));
        }
        Ok(Self(value.into()))
    }

    /// The full name of the message.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Kind {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl ObjectKey ===

impl ObjectKey {
    /// Checks and takes a name within a kind.
    ///
    /// # Errors
    /// If namespace or name is not one that objects may have.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Result<Self, Invalid> {
        if !namespace.is_empty() {
            check_name("namespace", namespace)?;
        }
        check_name("name", name)?;
        Ok(Self(Arc::new(Parts { kind, namespace: namespace.into(), name: name.into() })))
    }

    /// The kind of the object.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its namespace; empty if it has none.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The key as it travels.
    pub fn to_wire(&self) -> v1::Key {
        v1::Key { kind: self.kind().to_string(), namespace: self.namespace().into(), name: self.name().into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace().is_empty() {
            write!(f, "{}/{}", self.kind(), self.name())
        } else {
            write!(f, "{}/{}/{}", self.kind(), self.namespace(), self.name())
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<&v1::Key> for ObjectKey {
    type Error = Invalid;

    fn try_from(key: &v1::Key) -> Result<Self, Invalid> {
        Self::new(Kind::new(&key.kind)?, &key.namespace, &key.name)
    }
}

// === impl Reference ===

impl Reference {
    /// A reference that orders delivery.
    pub fn strong(to: ObjectKey) -> Self {
        Self { to, weak: false }
    }
}

impl TryFrom<&v1::Reference> for Reference {
    type Error = Invalid;

    fn try_from(reference: &v1::Reference) -> Result<Self, Invalid> {
        let to = ObjectKey::new(Kind::new(&reference.kind)?, &reference.namespace, &reference.name)?;
        Ok(Self { to, weak: reference.weak })
    }
}
