//! What a reaction depends on besides its own object.

use nimbus_core::{Invalid, Kind, ObjectKey, Selector, Spec};

/// What a reaction depends on besides its own object: when that changes, the reaction is repeated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ref {
    /// One object, whether it exists yet or not.
    Object(ObjectKey),
    /// All objects of a kind whose labels match. An empty selector matches all of them.
    Matching(Kind, Selector),
}

// === impl Ref ===

impl Ref {
    /// One object, whether it exists yet or not.
    pub fn to(key: &ObjectKey) -> Self {
        Self::Object(key.clone())
    }

    /// All objects of a kind.
    pub fn all<K: Spec>() -> Self {
        Self::Matching(K::kind(), Selector::default())
    }

    /// All objects of a kind whose labels match, such as `zone in (a,b),!canary`.
    ///
    /// # Errors
    /// If the selector is none.
    pub fn matching<K: Spec>(selector: &str) -> Result<Self, Invalid> {
        Ok(Self::Matching(K::kind(), Selector::parse(selector)?))
    }

    /// The kind of what is looked at.
    pub fn kind(&self) -> &Kind {
        match self {
            Self::Object(key) => key.kind(),
            Self::Matching(kind, _) => kind,
        }
    }
}

impl From<ObjectKey> for Ref {
    fn from(key: ObjectKey) -> Self {
        Self::Object(key)
    }
}
