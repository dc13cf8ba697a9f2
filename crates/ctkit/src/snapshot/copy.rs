//! One kind at one moment.

use std::sync::Arc;

use nimbus_core::{ObjectKey, Revision};
use nimbus_store::{Record, Records, View};

use crate::source::Change;

/// One kind at one moment. A clone costs a few pointers.
#[derive(Debug, Clone, Default)]
pub(crate) struct KindCopy {
    pub(crate) objects: Objects,
    /// Everything up to here is in it.
    pub(crate) revision: Revision,
}

/// Objects of one kind.
#[derive(Debug, Clone)]
pub(crate) enum Objects {
    /// A part of a collection in this process: no copy at all.
    View(View),
    /// From elsewhere.
    Listed(Records),
}

// === impl KindCopy ===

impl KindCopy {
    /// Makes a change, and says to what, unless there is something as new already.
    pub(crate) fn apply(&mut self, change: Change) -> Option<ObjectKey> {
        let Objects::Listed(objects) = &mut self.objects else { return None };
        let known = objects.get(change.key()).map(|record| record.revision());
        if known.is_some_and(|known| known >= change.revision()) {
            return None;
        }
        match change {
            Change::Put(record) => {
                let key = record.key().clone();
                objects.insert(record);
                Some(key)
            }
            Change::Removed(key, _) => objects.remove(&key).map(|_| key),
        }
    }
}

// === impl Objects ===

impl Objects {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<Record>> {
        match self {
            Self::View(view) => view.get(key),
            Self::Listed(objects) => objects.get(key),
        }
    }

    /// In the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.after(None)
    }

    /// The same, of those that come after a name.
    pub(crate) fn after(&self, after: Option<&ObjectKey>) -> impl Iterator<Item = &Arc<Record>> {
        let (view, listed) = match self {
            Self::View(view) => (Some(view), None),
            Self::Listed(objects) => (None, Some(objects)),
        };
        let of_view = view.into_iter().flat_map(move |view| view.iter(after));
        of_view.chain(listed.into_iter().flat_map(move |listed| listed.iter(after)))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::View(view) => view.len(),
            Self::Listed(objects) => objects.len(),
        }
    }
}

impl Default for Objects {
    fn default() -> Self {
        Self::Listed(Records::new())
    }
}

impl From<Option<View>> for Objects {
    fn from(view: Option<View>) -> Self {
        view.map_or_else(Self::default, Self::View)
    }
}
