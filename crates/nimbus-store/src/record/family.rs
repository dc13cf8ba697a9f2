//! What objects of one kind and one publisher have in common, kept once.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, OnceLock, Weak},
};

use nimbus_core::{Kind, PublisherId};
use parking_lot::Mutex;

use crate::record::encode::{ANY_TYPE, KIND, MANAGER, put_text};

/// What objects of one kind and one publisher have in common. There may be a million of these, and few families.
pub(crate) struct Family {
    pub(crate) kind: Kind,
    pub(crate) manager: PublisherId,
    /// The kind as an encoded field of the object.
    pub(crate) kind_field: Box<[u8]>,
    /// The manager as an encoded field of the object.
    pub(crate) manager_field: Box<[u8]>,
    /// The type as an encoded field of a spec.
    pub(crate) type_field: Box<[u8]>,
    pub(crate) owner_kinds: OwnerKinds,
}

/// Kinds of which the owners of a family's objects are, numbered in the order in which they were first seen.
///
/// Objects of one kind are mostly there for those of another one. Owners come from outside and may be of more kinds, and of
/// what is no kind: these are no harm, as the kind of an owner that has no number here is kept with the object.
#[derive(Default)]
pub(crate) struct OwnerKinds([OnceLock<Box<str>>; Self::MOST]);

/// All families that somebody has.
struct Families {
    known: HashMap<(Kind, PublisherId), Weak<Family>>,
    /// When there are so many, those that nobody has are forgotten.
    look_at: usize,
}

/// What everybody puts before the name of a message, to make a type of it.
const TYPE_PREFIX: &str = "type.googleapis.com/";

/// So few families that nobody has are no harm.
const LOOK_FROM: usize = 64;

static FAMILIES: LazyLock<Mutex<Families>> =
    LazyLock::new(|| Mutex::new(Families { known: HashMap::new(), look_at: LOOK_FROM }));

thread_local! {
    /// Who writes an object mostly writes another one of the same family.
    static LAST: RefCell<Option<Arc<Family>>> = const { RefCell::new(None) };
}

// === impl Family ===

impl Family {
    /// The family of these.
    pub(crate) fn of(kind: &Kind, manager: &PublisherId) -> Arc<Self> {
        LAST.with_borrow_mut(|last| match last {
            Some(family) if family.kind == *kind && family.manager == *manager => family.clone(),
            _ => last.insert(FAMILIES.lock().find(kind, manager)).clone(),
        })
    }

    fn new(kind: &Kind, manager: &PublisherId) -> Self {
        let field = |number, text: &str| {
            let mut field = Vec::new();
            put_text(&mut field, number, text);
            field.into_boxed_slice()
        };
        Self {
            kind: kind.clone(),
            manager: manager.clone(),
            kind_field: field(KIND, kind.as_str()),
            manager_field: field(MANAGER, manager.as_str()),
            type_field: field(ANY_TYPE, &format!("{TYPE_PREFIX}{kind}")),
            owner_kinds: OwnerKinds::default(),
        }
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.kind, self.manager)
    }
}

// === impl OwnerKinds ===

impl OwnerKinds {
    /// Few enough to compare with each.
    pub(crate) const MOST: usize = 7;

    /// No kind of an object is longer.
    const LONGEST: usize = 253;

    /// The number of a kind, if it has one or gets one now.
    pub(crate) fn number_of(&self, kind: &str) -> Option<u8> {
        if kind.is_empty() || kind.len() > Self::LONGEST {
            return None;
        }
        let known = self.0.iter().position(|known| **known.get_or_init(|| kind.into()) == *kind);
        known.map(|number| number as u8)
    }

    /// The kind that got this number.
    pub(crate) fn get(&self, number: u8) -> &str {
        self.0[usize::from(number)].get().expect("it was seen")
    }
}

// === impl Families ===

impl Families {
    fn find(&mut self, kind: &Kind, manager: &PublisherId) -> Arc<Family> {
        if self.known.len() >= self.look_at {
            self.known.retain(|_, family| family.strong_count() > 0);
            self.look_at = (self.known.len() * 2).max(LOOK_FROM);
        }
        let family = self.known.entry((kind.clone(), manager.clone())).or_default();
        family.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Family::new(kind, manager));
            *family = Arc::downgrade(&new);
            new
        })
    }
}

#[cfg(test)]
mod tests;
