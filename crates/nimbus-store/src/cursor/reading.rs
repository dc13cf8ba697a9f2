//! A scope, and what it takes to read it.

use std::sync::Arc;

use nimbus_core::{BucketSet, Buckets, Revision};

use crate::{
    collection::Collection,
    cursor::Mark,
    feed::{Feed, FeedKey, Sight},
    filter_lease::FilterLease,
    interest::{Place, Signal},
    lane::Lane,
    record::Record,
    scope::Scope,
    state::State,
};

/// A scope and what it takes to read it.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) scope: Scope,
    pub(crate) parts: Vec<Arc<Feed>>,
    shape: u64,
    _place: Place,
    _lease: Option<FilterLease>,
}

/// A scope in one state.
pub(crate) struct View {
    pub(crate) state: Arc<State>,
    pub(crate) sights: Vec<Arc<Sight>>,
    pub(crate) mark: Mark,
    pub(crate) last: Revision,
    /// Changes of it that there ever were.
    pub(crate) changes: u64,
}

/// While others look at newer states of a shared feed, a reader looks again this often before it looks on its own.
const LOOKS: usize = 8;

// === impl Reading ===

impl Reading {
    pub(crate) fn new(store: &Collection, scope: Scope, signal: &Signal) -> Self {
        let lease = scope.filter.as_ref().map(|filter| store.lease(filter, scope.kinds.as_deref()));
        let place = store.interest().join(&scope, signal);
        // No shape is this: the first look finds the parts.
        Self { scope, parts: Vec::new(), shape: u64::MAX, _place: place, _lease: lease }
    }

    /// The scope as it is now.
    pub(crate) fn view(&mut self, store: &Collection) -> View {
        let (state, sights) = self.look(store);
        let mark = Mark {
            revision: state.head,
            objects: sights.iter().map(|sight| sight.objects as u64).sum(),
            digest: sights.iter().map(|sight| sight.root).collect(),
        };
        let last = sights.iter().map(|sight| sight.last).max().unwrap_or_default();
        let changes = sights.iter().map(|sight| sight.changes).sum();
        View { state, sights, mark, last, changes }
    }

    fn look(&mut self, store: &Collection) -> (Arc<State>, Vec<Arc<Sight>>) {
        for _ in 0..LOOKS {
            let state = store.state();
            if self.shape != state.selectors.shape() {
                self.open(store, &state);
            }
            if let Some(sights) = self.parts.iter().map(|feed| feed.sight(&state)).collect() {
                return (state, sights);
            }
        }
        let state = store.state();
        self.open(store, &state);
        let sights = self.parts.iter().map(|feed| Arc::new(feed.private_sight(&state))).collect();
        (state, sights)
    }

    /// Finds the feeds that the scope is made of in a state.
    fn open(&mut self, store: &Collection, state: &State) {
        self.shape = state.selectors.shape();
        let keys = FeedKey::parts(&self.scope, state);
        self.parts = keys.into_iter().map(|key| store.feeds().open(key)).collect();
    }
}

// === impl View ===

impl View {
    pub(crate) fn lanes(&self) -> impl Iterator<Item = Arc<Lane>> {
        self.sights.iter().flat_map(|sight| sight.lanes())
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = Arc<Record>> {
        self.lanes().flat_map(|lane| lane.live_after(Revision::ZERO).cloned().collect::<Vec<_>>())
    }

    /// The buckets that differ from what a reader offers; all of them, if it offers nothing that helps.
    pub(crate) fn differing(&self, offer: Option<&Buckets>) -> BucketSet {
        let Some(theirs) = offer else { return BucketSet::ALL };
        let mut ours = Buckets::default();
        self.sights.iter().for_each(|sight| ours.merge(&sight.buckets()));
        ours.differing(theirs)
    }
}
