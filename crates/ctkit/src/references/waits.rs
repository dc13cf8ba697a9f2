//! Who cannot go on before something is there.

use std::collections::{BTreeMap, HashMap, VecDeque};

use nimbus_core::{KeyMap, KeySet, ObjectKey};
use tokio::time::Instant;

/// Who cannot go on before something is there, and since when.
#[derive(Debug, Default)]
pub(crate) struct Waits(KeyMap<BTreeMap<ObjectKey, Instant>>);

// === impl Waits ===

impl Waits {
    /// Someone waits for exactly these; who already waited for one of them goes on to do so.
    pub(crate) fn begin(&mut self, referrer: &ObjectKey, awaited: KeySet, now: Instant) {
        let before = self.0.remove(referrer).unwrap_or_default();
        if awaited.is_empty() {
            return;
        }
        let since = |key: &ObjectKey| before.get(key).copied().unwrap_or(now);
        let awaited = awaited.into_iter().map(|key| (key.clone(), since(&key))).collect();
        self.0.insert(referrer.clone(), awaited);
    }

    /// Someone no longer waits.
    pub(crate) fn end(&mut self, referrer: &ObjectKey) {
        self.0.remove(referrer);
    }

    /// What someone waits for, and since when.
    pub(crate) fn of(&self, referrer: &ObjectKey) -> impl Iterator<Item = (&ObjectKey, Instant)> {
        self.0.get(referrer).into_iter().flatten().map(|(key, since)| (key, *since))
    }

    /// Whether someone waits for a certain object.
    pub(crate) fn awaits(&self, referrer: &ObjectKey, key: &ObjectKey) -> bool {
        self.0.get(referrer).is_some_and(|awaited| awaited.contains_key(key))
    }

    /// What holds someone up in the end: the shortest way to something that is missing and waits for nothing itself. If
    /// there is none, those who wait for each other, the first of them again at the end.
    pub(crate) fn chain(&self, from: &ObjectKey, there: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let blockers = |key| self.of(key).map(|(key, _)| key).filter(|key| !there(key));
        let mut came_from: HashMap<&ObjectKey, &ObjectKey> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for blocker in blockers(at).filter(|key| *key != from) {
                if came_from.contains_key(blocker) {
                    continue;
                }
                came_from.insert(blocker, at);
                if blockers(blocker).next().is_none() {
                    return path(blocker, from, &came_from);
                }
                queue.push_back(blocker);
            }
        }
        let mut chain: Vec<ObjectKey> = Vec::new();
        let mut next = blockers(from).next();
        while let Some(at) = next {
            let is_round = chain.contains(at);
            chain.push(at.clone());
            next = blockers(at).next().filter(|_| !is_round);
        }
        chain
    }
}

fn path(to: &ObjectKey, from: &ObjectKey, came_from: &HashMap<&ObjectKey, &ObjectKey>) -> Vec<ObjectKey> {
    let before = |key: &&ObjectKey| came_from.get(*key).copied().filter(|key| *key != from);
    let mut path: Vec<_> = std::iter::successors(Some(to), before).cloned().collect();
    path.reverse();
    path
}
