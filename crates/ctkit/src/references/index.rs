//! From what has changed to those who look at it.

use std::collections::{BTreeMap, HashMap};

use nimbus_core::{KeyMap, KeySet, Kind, Labels, ObjectKey, Selector};
use tokio::time::Instant;

use crate::references::{Changed, Ref};

/// From what has changed to those who look at it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    objects: KeyMap<Referent>,
    kinds: HashMap<Kind, Watched>,
}

/// One object that somebody looks at.
#[derive(Debug)]
pub(crate) struct Referent {
    pub(crate) referrers: KeySet,
    /// Since when it is looked at or gone, whichever is later: if it is not there, it has been missing since.
    pub(crate) since: Instant,
}

/// One kind that somebody looks at.
#[derive(Debug, Default)]
struct Watched {
    /// References to the kind, and to objects of it.
    count: usize,
    selectors: BTreeMap<Selector, KeySet>,
}

// === impl Index ===

impl Index {
    /// Adds a reference that is not there yet, and says whether it is the first one to its kind.
    pub(crate) fn add(&mut self, reference: &Ref, referrer: &ObjectKey, now: Instant) -> bool {
        let watched = self.kinds.entry(reference.kind().clone()).or_default();
        watched.count += 1;
        let is_first = watched.count == 1;
        let referrers = match reference {
            Ref::Object(key) => {
                let empty = || Referent { referrers: KeySet::default(), since: now };
                &mut self.objects.entry(key.clone()).or_insert_with(empty).referrers
            }
            Ref::Matching(_, selector) => watched.selectors.entry(selector.clone()).or_default(),
        };
        referrers.insert(referrer.clone());
        is_first
    }

    /// Removes a reference that is there, and says whether it was the last one to its kind.
    pub(crate) fn remove(&mut self, reference: &Ref, referrer: &ObjectKey) -> bool {
        let Some(watched) = self.kinds.get_mut(reference.kind()) else { return false };
        watched.count -= 1;
        let is_last = watched.count == 0;
        match reference {
            Ref::Object(key) => {
                if let Some(referent) = self.objects.get_mut(key) {
                    referent.referrers.remove(referrer);
                    if referent.referrers.is_empty() {
                        self.objects.remove(key);
                    }
                }
            }
            Ref::Matching(_, selector) => {
                if let Some(referrers) = watched.selectors.get_mut(selector) {
                    referrers.remove(referrer);
                    if referrers.is_empty() {
                        watched.selectors.remove(selector);
                    }
                }
            }
        }
        if is_last {
            self.kinds.remove(reference.kind());
        }
        is_last
    }

    /// Those who look at an object by name, by what it was or by what it is; some of them perhaps more than once.
    pub(crate) fn lookers(&self, change: &Changed<'_>) -> impl Iterator<Item = &ObjectKey> {
        let by_name = self.objects.get(change.key).map(|referent| &referent.referrers);
        let is_met = |selector: &Selector, labels: Option<&Labels>| labels.is_some_and(|it| selector.matches(it));
        let by_labels = self.kinds.get(change.key.kind()).into_iter().flat_map(|watched| &watched.selectors);
        let by_labels = by_labels
            .filter(move |(selector, _)| is_met(selector, change.before) || is_met(selector, change.after))
            .map(|(_, referrers)| referrers);
        by_name.into_iter().chain(by_labels).flatten()
    }

    /// Those who look at a kind, or at objects of it.
    pub(crate) fn lookers_at(&self, kind: &Kind) -> impl Iterator<Item = &ObjectKey> {
        let by_name = self
            .objects
            .iter()
            .filter(move |(key, _)| key.kind() == kind)
            .map(|(_, of)| &of.referrers);
        by_name.flatten().chain(self.selectors_of(kind))
    }

    /// Those who look at objects of a kind by their labels.
    pub(crate) fn selectors_of(&self, kind: &Kind) -> impl Iterator<Item = &ObjectKey> {
        self.kinds.get(kind).into_iter().flat_map(|watched| watched.selectors.values()).flatten()
    }

    /// An object is gone, and missing since.
    pub(crate) fn gone(&mut self, key: &ObjectKey, now: Instant) {
        if let Some(referent) = self.objects.get_mut(key) {
            referent.since = now;
        }
    }

    pub(crate) fn object(&self, key: &ObjectKey) -> Option<&Referent> {
        self.objects.get(key)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Referent)> {
        self.objects.iter()
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&Kind, usize)> {
        self.kinds.iter().map(|(kind, watched)| (kind, watched.count))
    }
}
