//! What a reader holds, as the description of the protocol says.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_wire::v1::{self, Mode};

use crate::model::Key;

/// An object as it was sent.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) number: u64,
    /// The history that the revision is of.
    pub(super) epoch: u64,
    pub(super) revision: u64,
    pub(super) manager: String,
    pub(super) digest: Vec<u8>,
    pub(super) refs: Vec<v1::Reference>,
}

/// What a reader holds, and where that is exact.
#[derive(Debug, Default)]
pub(super) struct Holding {
    pub(super) held: BTreeMap<Key, Seen>,
    pub(super) position: Option<v1::Position>,
    /// The newest write of each object that it ever held.
    pub(super) newest: BTreeMap<Key, u64>,
    session: Option<v1::Position>,
    /// What is held came from this history, all of it.
    history: Option<u64>,
    pub(super) staged: Vec<(Key, Option<Seen>)>,
    pub(super) snapshot: Option<Snapshot>,
}

/// A snapshot under way.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// None is all of them.
    buckets: Option<Vec<u8>>,
    seen: BTreeSet<Key>,
}

const DIGEST: usize = 16;
const BUCKETS: usize = 256;

fn xor(into: &mut [u8], digest: &[u8]) {
    into.iter_mut().zip(digest).for_each(|(into, byte)| *into ^= byte);
}

// === impl Holding ===

impl Holding {
    pub(super) fn is_exact(&self) -> bool {
        self.position.is_some() && self.session.is_some()
    }

    /// The history that is being read.
    pub(super) fn epoch(&self) -> u64 {
        self.session.map(|session| session.epoch).unwrap_or_default()
    }

    /// What to offer when subscribing.
    pub(super) fn resume(&self, position: bool, root: bool, buckets: bool) -> Option<v1::Resume> {
        if self.held.is_empty() && self.position.is_none() {
            return None;
        }
        let mut origins: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut sums = vec![0; BUCKETS * DIGEST];
        for (key, seen) in &self.held {
            origins.entry(&seen.manager).or_default().insert(&key.kind);
            let bucket = usize::from(seen.digest[0]) * DIGEST;
            xor(&mut sums[bucket..bucket + DIGEST], &seen.digest);
        }
        let origin = |(manager, kinds): (&str, BTreeSet<&str>)| v1::Origin {
            manager: manager.to_owned(),
            kinds: kinds.into_iter().map(str::to_owned).collect(),
        };
        Some(v1::Resume {
            position: self.position.filter(|_| position),
            root: if root { self.root().into() } else { Default::default() },
            buckets: if buckets { sums.into() } else { Default::default() },
            origins: origins.into_iter().map(origin).collect(),
        })
    }

    pub(super) fn root(&self) -> Vec<u8> {
        let mut root = vec![0; DIGEST];
        self.held.values().for_each(|seen| xor(&mut root, &seen.digest));
        root
    }

    pub(super) fn disconnect(&mut self) {
        self.session = None;
        self.staged.clear();
        self.snapshot = None;
    }

    pub(super) fn welcome(&mut self, at: v1::Position, mode: Mode) {
        self.session = Some(at);
        if mode != Mode::Delta {
            self.history = None;
        }
    }

    pub(super) fn begin_snapshot(&mut self, buckets: &[u8]) {
        self.position = None;
        self.history = None;
        self.staged.clear();
        let buckets = (!buckets.is_empty()).then(|| buckets.to_vec());
        self.snapshot = Some(Snapshot { buckets, seen: BTreeSet::new() });
    }

    pub(super) fn perform(&mut self, (key, seen): (Key, Option<Seen>)) {
        if let Some(snapshot) = &mut self.snapshot {
            if seen.is_some() {
                snapshot.seen.insert(key.clone());
            } else {
                snapshot.seen.remove(&key);
            }
        }
        match seen {
            Some(seen) => {
                self.newest.insert(key.clone(), seen.number);
                self.held.insert(key, seen);
            }
            None => {
                self.held.remove(&key);
            }
        }
    }

    /// The group is complete.
    pub(super) fn settle(&mut self) {
        for change in std::mem::take(&mut self.staged) {
            self.perform(change);
        }
    }

    /// The snapshot is complete: what was not in it goes.
    pub(super) fn sweep(&mut self) -> Vec<(Key, Seen)> {
        let Some(snapshot) = self.snapshot.take() else { return Vec::new() };
        let covered = |seen: &Seen| {
            let bucket = usize::from(seen.digest[0]);
            let covers = |buckets: &Vec<u8>| buckets[bucket / 8] & (1 << (bucket % 8)) != 0;
            snapshot.buckets.as_ref().is_none_or(covers)
        };
        let gone = |(key, seen): &(&Key, &Seen)| covered(seen) && !snapshot.seen.contains(key);
        let gone: Vec<_> = self.held.iter().filter(gone).map(|(key, seen)| (key.clone(), seen.clone())).collect();
        gone.iter().for_each(|(key, _)| drop(self.held.remove(key)));
        gone
    }

    /// It is exact here now. None if it was further already.
    pub(super) fn reach(&mut self, revision: u64) -> Option<v1::Position> {
        let position = v1::Position { revision, ..self.session? };
        let before = self
            .position
            .filter(|before| before.epoch == position.epoch && self.history == Some(position.epoch));
        if before.is_some_and(|before| before.revision > revision) {
            return None;
        }
        self.position = Some(position);
        self.history = Some(position.epoch);
        Some(position)
    }
}
