//! A collection at one moment: immutable, shared, cheap to keep.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use nimbus_core::{
    Epoch, Kind, ObjectKey, PublisherId, Revision,
    planted::{self, Bug},
};

use crate::{
    filter::{Filter, FilterIndex},
    record::Record,
    scope::{Origin, Scope},
    selectors::Selectors,
    view::View,
};

/// A collection at one moment. Readers hold on to it for as long as they like; a clone costs a few pointers.
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) epoch: Epoch,
    /// Every kind is complete from the beginning.
    pub(crate) assume_complete: bool,
    /// Nothing that was ever acknowledged is missing, because it is on disk.
    pub(crate) durable: bool,
    /// Rises with everything that readers could notice, also where no revision is made.
    pub(crate) version: u64,
    pub(crate) head: Revision,
    pub(crate) horizon: Revision,
    pub(crate) kinds: OrdMap<Kind, Arc<KindState>>,
    pub(crate) selectors: Selectors,
    /// Publishers that have finished a sync in this epoch.
    pub(crate) synced: OrdSet<PublisherId>,
    /// Small facts beside the objects.
    pub(crate) extras: OrdMap<Arc<str>, Bytes>,
    pub(crate) objects: usize,
    pub(crate) bytes: u64,
}

/// One kind within a collection.
#[derive(Debug, Clone)]
pub struct KindState {
    /// All objects.
    pub(crate) all: View,
    /// Those that pass a filter that somebody is subscribed with.
    pub(crate) filtered: OrdMap<Arc<Filter>, Arc<View>>,
    pub(crate) index: FilterIndex,
    /// The filters whose views have an object.
    pub(crate) holders: OrdMap<ObjectKey, Arc<BTreeSet<Arc<Filter>>>>,
    /// Publishers that announced a sync of this kind, and whether they finished one.
    pub(crate) publishers: OrdMap<PublisherId, bool>,
}

/// What the names of the kinds of nimbus itself begin with.
const OWN_KINDS: &str = "nimbus.v1.";

// === impl State ===

impl State {
    pub(crate) fn new(epoch: Epoch, assume_complete: bool) -> Self {
        Self {
            epoch,
            assume_complete,
            durable: false,
            version: 0,
            head: Revision::ZERO,
            horizon: Revision::ZERO,
            kinds: OrdMap::new(),
            selectors: Selectors::default(),
            synced: OrdSet::new(),
            extras: OrdMap::new(),
            objects: 0,
            bytes: 0,
        }
    }

    /// The history that revisions count in.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Rises with everything that readers could notice, also where no revision is made.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The newest revision.
    pub fn head(&self) -> Revision {
        self.head
    }

    /// Ends of objects up to this revision may have been forgotten: nobody can resume from before it.
    pub fn horizon(&self) -> Revision {
        self.horizon
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Record>> {
        self.kinds.get(key.kind())?.all.get(key)
    }

    /// A kind, if it has ever been written or announced.
    pub fn kind(&self, kind: &Kind) -> Option<&KindState> {
        self.kinds.get(kind).map(|kind| &**kind)
    }

    /// All kinds.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, &KindState)> {
        self.kinds.iter().map(|(name, kind)| (name, &**kind))
    }

    /// Whether that publisher has finished a sync in this epoch.
    pub fn is_synced(&self, publisher: &str) -> bool {
        self.synced.contains(publisher)
    }

    /// Whether all publishers of that kind have finished a sync in this epoch. Kinds of nimbus itself are notes that
    /// controllers keep, one by one, and that nobody ever syncs.
    ///
    /// Of a kind that is written one by one, and that nobody syncs, a durable collection misses nothing either.
    pub fn is_complete(&self, kind: &Kind) -> bool {
        let unsynced = |kind: &KindState| self.durable && kind.publishers.is_empty();
        self.assume_complete
            || kind.as_str().starts_with(OWN_KINDS)
            || self.kinds.get(kind).is_some_and(|kind| kind.is_complete() || unsynced(kind))
    }

    /// Whether nothing that a reader of this scope could have is still missing: every kind is complete, and what the
    /// reader holds was synced again in this epoch by those that it came from.
    pub fn is_settled(&self, scope: &Scope, origins: &[Origin]) -> bool {
        if self.assume_complete || planted::is(Bug::EndSnapshotEarly) {
            return true;
        }
        let complete = match &scope.kinds {
            Some(kinds) => kinds.iter().all(|kind| self.is_complete(kind)),
            None => !self.kinds.is_empty() && self.kinds.keys().all(|kind| self.is_complete(kind)),
        };
        complete && origins.iter().all(|origin| self.has_synced(origin))
    }

    /// Whether it has a kind that is complete, and that was not there before: a scope may be settled by that alone.
    pub(crate) fn completes_new_kind(&self, before: &Self) -> bool {
        let new = |kind: &&Kind| !before.kinds.contains_key(*kind);
        // Kinds never go. If all are complete anyway, nobody has waited for one.
        self.kinds.len() > before.kinds.len()
            && !self.assume_complete
            && self.kinds.keys().filter(new).any(|kind| self.is_complete(kind))
    }

    /// Whether that publisher has finished a sync of that kind in this epoch.
    pub fn has_synced(&self, Origin { manager, kind }: &Origin) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.publishers.get(manager) == Some(&true))
    }

    /// Kinds of a scope whose publishers have not finished a sync in this epoch.
    pub fn incomplete_kinds(&self, scope: &Scope) -> Vec<Kind> {
        if self.assume_complete {
            return Vec::new();
        }
        match &scope.kinds {
            Some(kinds) => kinds.iter().filter(|kind| !self.is_complete(kind)).cloned().collect(),
            None => self
                .kinds
                .iter()
                .filter(|(kind, _)| !self.is_complete(kind))
                .map(|(kind, _)| kind.clone())
                .collect(),
        }
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Bytes of all encoded objects.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The view of a kind through a filter, if there is one.
    pub(crate) fn view(&self, kind: &Kind, filter: Option<&Arc<Filter>>) -> Option<&View> {
        let kind = self.kinds.get(kind)?;
        match filter {
            None => Some(&kind.all),
            Some(filter) => kind.filtered.get(filter).map(|view| &**view),
        }
    }
}

// === impl KindState ===

impl KindState {
    pub(crate) fn new() -> Self {
        Self {
            all: View::new(Revision::ZERO),
            filtered: OrdMap::new(),
            index: FilterIndex::default(),
            holders: OrdMap::new(),
            publishers: OrdMap::new(),
        }
    }

    /// All objects of the kind.
    pub fn all(&self) -> &View {
        &self.all
    }

    /// Whether every publisher that has begun a sync in this epoch has finished one, and at least one has.
    pub fn is_complete(&self) -> bool {
        !self.publishers.is_empty() && self.publishers.values().all(|synced| *synced)
    }

    /// Takes note that the view of a filter has an object.
    pub(crate) fn hold(&mut self, key: &ObjectKey, filter: &Arc<Filter>) {
        Arc::make_mut(self.holders.entry(key.clone()).or_default()).insert(filter.clone());
    }

    /// Takes note that the view of a filter no longer has an object.
    pub(crate) fn let_go(&mut self, key: &ObjectKey, filter: &Arc<Filter>) {
        let Some(holders) = self.holders.get_mut(key) else { return };
        let holders = Arc::make_mut(holders);
        holders.remove(filter);
        if holders.is_empty() {
            self.holders.remove(key);
        }
    }

    /// Publishers that announced a sync of this kind, and have not finished one.
    pub fn unsynced(&self) -> impl Iterator<Item = &PublisherId> {
        self.publishers.iter().filter(|(_, synced)| !**synced).map(|(publisher, _)| publisher)
    }

    /// Publishers that announced a sync of this kind.
    pub fn publishers(&self) -> impl Iterator<Item = &PublisherId> {
        self.publishers.keys()
    }
}
