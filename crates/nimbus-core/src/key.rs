//! Kinds, object keys and references.

mod maps;
mod names;

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{BuildHasher as _, Hash, Hasher, RandomState},
    sync::{Arc, LazyLock},
};

use nimbus_wire::v1;

pub use self::maps::{KeyHash, KeyHashes, KeyMap, KeySet};
use crate::{
    id::{Invalid, check_name},
    key::names::Names,
};

/// Protobuf sets no limit; nobody needs more.
const MAX_KIND: usize = 253;

/// A protobuf message type, by its full name (`demo.v1.NetworkPolicy`).
#[derive(Clone, Eq)]
pub struct Kind(Arc<str>);

/// The name of an object: kind, namespace (may be empty) and name.
///
/// Cheap to clone, to compare and to hash: it is one allocation, unless it is long, and knows its hash. Ordered by kind,
/// then namespace, then name.
#[derive(Clone)]
pub struct ObjectKey(Arc<Parts>);

struct Parts {
    /// Of the rest.
    hash: u64,
    kind: Kind,
    names: Names,
}

/// Strangers choose names, so their hashes must not be foreseeable: the key of this is another one in each process.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What an object needs. A weak reference orders nothing and holds nothing back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The referent.
    pub to: ObjectKey,
    /// Whether it is only informative.
    pub weak: bool,
    /// Whether a field of the spec says so, and nobody else: the bus finds these, and ignores them on a write.
    pub declared: bool,
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

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        // Most kinds that are compared are the same piece of memory.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

/// As its name, by which it can be looked up.
impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        // Most keys that are compared are of one kind, and share its name.
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
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
        let names = Names::new(namespace, name);
        // What is hashed says where each of the three begins.
        let (text, lengths) = (names.text().1, [kind.as_str().len() as u32, namespace.len() as u32]);
        let mut hasher = HASHES.build_hasher();
        hasher.write_u64(u64::from(lengths[0]) << 32 | u64::from(lengths[1]));
        hasher.write(kind.as_str().as_bytes());
        hasher.write(text.as_bytes());
        Ok(Self(Arc::new(Parts { hash: hasher.finish(), kind, names })))
    }

    /// The kind of the object.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its namespace; empty if it has none.
    pub fn namespace(&self) -> &str {
        self.0.names.namespace()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.names.name()
    }

    /// The key as it travels.
    pub fn to_wire(&self) -> v1::Key {
        v1::Key { kind: self.kind().to_string(), namespace: self.namespace().into(), name: self.name().into() }
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.0, &other.0);
        Arc::ptr_eq(one, two) || (one.hash == two.hash && one.names == two.names && one.kind == two.kind)
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.0, &other.0);
        if Arc::ptr_eq(one, two) {
            return Ordering::Equal;
        }
        one.kind.cmp(&two.kind).then_with(|| one.names.cmp(&two.names))
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
        Self { to, weak: false, declared: false }
    }

    /// A reference that orders nothing.
    pub fn weak(to: ObjectKey) -> Self {
        Self { to, weak: true, declared: false }
    }

    /// The reference as it travels.
    pub fn to_wire(&self) -> v1::Reference {
        let v1::Key { kind, namespace, name } = self.to.to_wire();
        v1::Reference { kind, namespace, name, weak: self.weak, declared: self.declared }
    }
}

impl TryFrom<&v1::Reference> for Reference {
    type Error = Invalid;

    fn try_from(reference: &v1::Reference) -> Result<Self, Invalid> {
        let to = ObjectKey::new(Kind::new(&reference.kind)?, &reference.namespace, &reference.name)?;
        Ok(Self { to, weak: reference.weak, declared: reference.declared })
    }
}
