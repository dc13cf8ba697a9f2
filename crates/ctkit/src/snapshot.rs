//! Objects at one moment.

mod copy;

use std::{collections::BTreeMap, sync::Arc};

use nimbus_core::{Epoch, Kind, ObjectKey, Revision};
use nimbus_store::{Record, State};

pub(crate) use copy::{KindCopy, Objects};

/// Objects of one or several kinds at one moment: immutable, shared, cheap to clone and to keep.
///
/// Reading it takes no lock, so that a reactor may look at as many other objects as it likes, in any order. It may be
/// stale; that of a reflector is never older than what a subscriber was woken for.
#[derive(Debug, Clone)]
pub struct Snapshot(View);

#[derive(Debug, Clone)]
enum View {
    /// A collection in this process.
    State(Arc<State>),
    /// Kinds that were read one by one.
    Copies(Arc<BTreeMap<Kind, KindCopy>>),
}

// === impl Snapshot ===

impl Snapshot {
    /// Joins copies of kinds, each as it is.
    pub(crate) fn of_copies(copies: impl IntoIterator<Item = (Kind, KindCopy)>) -> Self {
        Self(View::Copies(Arc::new(copies.into_iter().collect())))
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Record>> {
        match &self.0 {
            View::State(state) => state.get(key).cloned(),
            View::Copies(copies) => copies.get(key.kind())?.objects.get(key).cloned(),
        }
    }

    /// How many objects of a kind there are.
    pub(crate) fn len(&self, kind: &Kind) -> usize {
        match &self.0 {
            View::State(state) => state.kind(kind).map_or(0, |kind| kind.all().len()),
            View::Copies(copies) => copies.get(kind).map_or(0, |copy| copy.objects.len()),
        }
    }

    /// All objects of a kind, in the order of their names.
    pub fn list(&self, kind: &Kind) -> impl Iterator<Item = &Arc<Record>> {
        self.list_after(kind, None)
    }

    /// The same, of those that come after a name.
    pub(crate) fn list_after(&self, kind: &Kind, after: Option<&ObjectKey>) -> impl Iterator<Item = &Arc<Record>> {
        let (state, copy) = match &self.0 {
            View::State(state) => (state.kind(kind), None),
            View::Copies(copies) => (None, copies.get(kind)),
        };
        let of_state = state.into_iter().flat_map(move |kind| kind.all().iter(after));
        of_state.chain(copy.into_iter().flat_map(move |copy| copy.objects.after(after)))
    }

    /// Everything up to this revision is in it; of several kinds that were read one by one, that of the oldest.
    pub fn revision(&self) -> Revision {
        match &self.0 {
            View::State(state) => state.head(),
            View::Copies(copies) => copies.values().map(|copy| copy.revision).min().unwrap_or_default(),
        }
    }

    /// The part that is of one kind. Holds on to nothing of other kinds.
    pub(crate) fn of_kind(&self, kind: &Kind) -> KindCopy {
        match &self.0 {
            View::State(state) => {
                KindCopy { objects: state.kind(kind).map(|kind| kind.all().clone()).into(), revision: state.head() }
            }
            View::Copies(copies) => copies.get(kind).cloned().unwrap_or_default(),
        }
    }

    /// The history that it belongs to, if it can say what changed since a revision of it.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        match &self.0 {
            View::State(state) => Some(state.epoch()),
            View::Copies(_) => None,
        }
    }

    /// What changed in a kind since a revision of the same epoch, if that is still known.
    pub(crate) fn changes(&self, kind: &Kind, since: Revision) -> Option<Vec<ObjectKey>> {
        match &self.0 {
            View::State(state) if state.reaches(since) => {
                Some(state.changes(kind, since).map(|changed| changed.key().clone()).collect())
            }
            _ => None,
        }
    }

    /// Whether nothing in a kind has changed since a revision of the same epoch.
    pub(crate) fn is_unchanged(&self, kind: &Kind, since: Revision) -> bool {
        match &self.0 {
            View::State(state) => state.last_change_of(kind) <= since,
            View::Copies(_) => false,
        }
    }
}

impl From<Arc<State>> for Snapshot {
    fn from(state: Arc<State>) -> Self {
        Self(View::State(state))
    }
}
