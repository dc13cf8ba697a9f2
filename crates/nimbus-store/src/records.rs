//! Objects of one kind by their names.

use std::{fmt, ops::Bound, sync::Arc};

use nimbus_core::ObjectKey;

use crate::{
    record::Record,
    tree::{Item, Tree},
    view::{compare_places, mark_of, place_of},
};

/// Objects of one kind by their names, in as little memory as in a [`View`](crate::View) and without its lanes. A clone stays
/// as it was, and costs two pointers.
#[derive(Debug, Clone)]
pub struct Records(Tree<Listed>);

/// An object of a list.
#[derive(Clone)]
struct Listed(Arc<Record>);

// === impl Records ===

impl Records {
    /// None.
    pub const fn new() -> Self {
        Self(Tree::new())
    }

    /// The object of that name, which must be of their kind.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Record>> {
        self.0.get(place_of(key)).map(|Listed(record)| record)
    }

    /// Puts an object into its place. Returns the one that was there.
    pub fn insert(&mut self, record: Arc<Record>) -> Option<Arc<Record>> {
        self.0.insert(Listed(record)).map(|Listed(record)| record)
    }

    /// Takes the object of that name out.
    pub fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Record>> {
        self.0.remove(place_of(key)).map(|Listed(record)| record)
    }

    /// All of them in the order of their names, after `after` if given.
    pub fn iter(&self, after: Option<&ObjectKey>) -> impl Iterator<Item = &Arc<Record>> {
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(place_of(after)));
        self.0.from(from).map(|Listed(record)| record)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Records {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Listed ===

impl Item for Listed {
    type Key<'a> = (&'a [u8], &'a [u8]);
    type Mark = Arc<[u8]>;

    fn key(&self) -> Self::Key<'_> {
        self.0.names_in_kind()
    }

    fn mark(&self) -> Arc<[u8]> {
        mark_of(&self.0)
    }

    fn place(mark: &Arc<[u8]>) -> Self::Key<'_> {
        mark[1..].split_at(usize::from(mark[0]))
    }

    fn order(one: Self::Key<'_>, two: Self::Key<'_>) -> std::cmp::Ordering {
        compare_places(one, two)
    }
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
