//! Who looks at what: which reactions to repeat when an object changes.

mod diff;
mod explanation;
mod index;
mod reference;
mod waits;

use std::collections::{BTreeSet, HashSet};

use nimbus_core::{KeyMap, KeySet, Kind, Labels, ObjectKey, Revision};
use tokio::time::Instant;

pub use crate::references::reference::Ref;
pub(crate) use crate::references::{diff::Diff, explanation::Dangling};
use crate::references::{index::Index, waits::Waits};

/// Who looks at what.
///
/// A referrer always states everything that it looks at; the difference to what it said before is computed here. A
/// change of a referent only names those to wake: they go through their queue like everybody else.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// What each referrer looks at; never empty.
    referrers: KeyMap<HashSet<Ref>>,
    index: Index,
    waits: Waits,
}

/// A change of an object that others may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changed<'a> {
    /// The object.
    pub(crate) key: &'a ObjectKey,
    /// Its labels before; `None` if it did not exist.
    pub(crate) before: Option<&'a Labels>,
    /// Its labels now; `None` if it is gone.
    pub(crate) after: Option<&'a Labels>,
    /// When it changed.
    pub(crate) at: Revision,
}

/// Whom to wake, each once and in order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "whoever is not woken works with what is no longer true"]
pub(crate) struct Wakes {
    /// What they read must be at least this new.
    pub(crate) at: Revision,
    /// Those that look at what has changed.
    pub(crate) referrers: Vec<ObjectKey>,
}

// === impl References ===

impl References {
    /// A referrer looks at exactly these from now on, and waits for none of them.
    pub(crate) fn declare(&mut self, referrer: &ObjectKey, refs: impl IntoIterator<Item = Ref>, now: Instant) -> Diff {
        self.waits.end(referrer);
        self.replace(referrer, refs.into_iter().collect(), now)
    }

    /// A referrer looks at these as well.
    pub(crate) fn add(&mut self, referrer: &ObjectKey, refs: impl IntoIterator<Item = Ref>, now: Instant) -> Diff {
        let before = self.referrers.get(referrer).into_iter().flatten().cloned();
        let refs = before.chain(refs).collect();
        self.replace(referrer, refs, now)
    }

    /// Whether anybody has said what this one looks at.
    pub(crate) fn knows(&self, referrer: &ObjectKey) -> bool {
        self.referrers.contains_key(referrer)
    }

    /// Whether nobody looks at anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.referrers.is_empty()
    }

    /// A referrer looks at exactly these and at what it waits for, and cannot go on before all of the latter are there.
    ///
    /// Ask [`Self::satisfied`] right after it: they may have come while the referrer made up its mind.
    pub(crate) fn wait_for(
        &mut self,
        referrer: &ObjectKey,
        refs: impl IntoIterator<Item = Ref>,
        awaited: impl IntoIterator<Item = ObjectKey>,
        now: Instant,
    ) -> Diff {
        let awaited: KeySet = awaited.into_iter().collect();
        let refs = refs.into_iter().chain(awaited.iter().cloned().map(Ref::Object)).collect();
        self.waits.begin(referrer, awaited, now);
        self.replace(referrer, refs, now)
    }

    /// A referrer is gone.
    pub(crate) fn forget(&mut self, referrer: &ObjectKey) -> Diff {
        self.waits.end(referrer);
        let before = self.referrers.remove(referrer).unwrap_or_default();
        let mut diff = Diff::between(&before, &HashSet::new());
        self.unlink(referrer, &mut diff);
        diff
    }

    /// Those who look at an object that has changed. None looks at itself: its own changes reach it anyway, and those
    /// that it makes must not.
    pub(crate) fn changed(&mut self, change: &Changed<'_>, now: Instant) -> Wakes {
        if change.after.is_none() {
            self.index.gone(change.key, now);
        }
        let referrers: HashSet<_> = self.index.lookers(change).filter(|referrer| *referrer != change.key).collect();
        let mut referrers: Vec<_> = referrers.into_iter().cloned().collect();
        referrers.sort_unstable();
        Wakes { at: change.at, referrers }
    }

    /// Those who look at a kind, or at objects of it, each once and in order.
    pub(crate) fn lookers_at(&self, kind: &Kind) -> Vec<ObjectKey> {
        let lookers: BTreeSet<_> = self.index.lookers_at(kind).cloned().collect();
        lookers.into_iter().collect()
    }

    /// Those who look at an object by its labels, if nobody knows what these were before: it may be any of them.
    pub(crate) fn perhaps(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let lookers: BTreeSet<_> = self.index.selectors_of(key.kind()).filter(|looker| *looker != key).collect();
        lookers.into_iter().cloned().collect()
    }

    /// Whether everything is there that a referrer waits for.
    pub(crate) fn satisfied(&self, referrer: &ObjectKey, there: impl Fn(&ObjectKey) -> bool) -> bool {
        self.waits.of(referrer).all(|(key, _)| there(key))
    }

    /// Whether a referrer has been waiting for all of these.
    pub(crate) fn awaits(&self, referrer: &ObjectKey, awaited: &[ObjectKey]) -> bool {
        awaited.iter().all(|key| self.waits.awaits(referrer, key))
    }

    /// The kinds that are looked at, and by how many references.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&Kind, usize)> {
        self.index.kinds()
    }

    fn replace(&mut self, referrer: &ObjectKey, refs: HashSet<Ref>, now: Instant) -> Diff {
        let before = self.referrers.remove(referrer).unwrap_or_default();
        let mut diff = Diff::between(&before, &refs);
        // First what is new: a kind that loses one reference and gains another is watched throughout.
        for reference in &diff.added {
            if self.index.add(reference, referrer, now) {
                diff.kinds_started.push(reference.kind().clone());
            }
        }
        self.unlink(referrer, &mut diff);
        if !refs.is_empty() {
            self.referrers.insert(referrer.clone(), refs);
        }
        diff
    }

    fn unlink(&mut self, referrer: &ObjectKey, diff: &mut Diff) {
        for reference in &diff.removed {
            if self.index.remove(reference, referrer) {
                diff.kinds_stopped.push(reference.kind().clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
