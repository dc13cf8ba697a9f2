//! Why something waits, and what never came.

use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::references::{Ref, References, index::Referent};

/// What an object looks at, and what holds it up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Explanation {
    /// Everything that it looks at, in order.
    pub(crate) refers_to: Vec<Ref>,
    /// Those of them that are not there, in order.
    pub(crate) missing: Vec<Missing>,
    /// Since when it waits for something that is still not there.
    pub(crate) waits_since: Option<Instant>,
    /// From what it waits for to what holds all of that up. If it ends in a name that it already has, those wait for each
    /// other.
    pub(crate) blocked_by: Vec<ObjectKey>,
    /// Those who look at it by its name, in order.
    pub(crate) referrers: Vec<ObjectKey>,
}

/// Something that is looked at and is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Missing {
    /// What is missing.
    pub(crate) key: ObjectKey,
    /// Since when it is looked at in vain.
    pub(crate) since: Instant,
    /// Whether the one who looks cannot go on without it.
    pub(crate) is_awaited: bool,
}

/// Something that is missing, and those who look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Dangling {
    /// What is missing.
    pub(crate) referent: ObjectKey,
    /// Those who look at it, in order.
    pub(crate) referrers: Vec<ObjectKey>,
    /// Since when it is looked at in vain.
    pub(crate) since: Instant,
}

// === impl References ===

impl References {
    /// What an object looks at, and what holds it up.
    pub(crate) fn explain(&self, key: &ObjectKey, there: impl Fn(&ObjectKey) -> bool) -> Explanation {
        let mut refers_to: Vec<_> = self.referrers.get(key).into_iter().flatten().cloned().collect();
        refers_to.sort_unstable();
        let missing = refers_to.iter().filter_map(|reference| match reference {
            Ref::Object(to) if !there(to) => Some(Missing {
                key: to.clone(),
                since: self.index.object(to)?.since,
                is_awaited: self.waits.awaits(key, to),
            }),
            _ => None,
        });
        let missing = missing.collect();
        let waits_since = self.waits.of(key).filter(|(awaited, _)| !there(awaited)).map(|(_, since)| since).min();
        let blocked_by = self.waits.chain(key, &there);
        let referrers = self.index.object(key).map(referrers).unwrap_or_default();
        Explanation { refers_to, missing, waits_since, blocked_by, referrers }
    }

    /// Everything that is looked at by its name and is not there: what is missing for the longest time comes first.
    pub(crate) fn dangling(&self, there: impl Fn(&ObjectKey) -> bool) -> Vec<Dangling> {
        let missing = self.index.objects().filter(|(key, _)| !there(key));
        let mut dangling: Vec<_> = missing
            .map(|(key, it)| Dangling { referent: key.clone(), referrers: referrers(it), since: it.since })
            .collect();
        dangling.sort_unstable_by(|a, b| (a.since, &a.referent).cmp(&(b.since, &b.referent)));
        dangling
    }
}

fn referrers(referent: &Referent) -> Vec<ObjectKey> {
    let mut referrers: Vec<_> = referent.referrers.iter().cloned().collect();
    referrers.sort_unstable();
    referrers
}
