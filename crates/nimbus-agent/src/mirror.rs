//! The mirror: what the bus says this agent should have, exactly, and how far it has read.
//!
//! No I/O: frames go in, and what follows from them comes out. Changes of a group are kept aside until the group is
//! complete; a snapshot is taken as it comes, and what was not in it goes at its end.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use nimbus_core::{BucketSet, Buckets, Digest, Epoch, Invalid, Kind, ObjectKey, Position, Revision, ScopeHash};
use nimbus_wire::v1::{self, Mode, event::Change as WireChange, frame::Frame, notice::Notice};

use crate::{board::Change, item::Item};

/// What the bus says this agent should have.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    held: HashMap<ObjectKey, Arc<Item>>,
    buckets: Buckets,
    root: Digest,
    /// Where it is exactly; none while a snapshot is being taken, or if it never was.
    position: Option<Position>,
    /// How far it is in this session; watermarks never exceed it.
    reached: Revision,
    /// Epoch and scope of this session.
    session: Option<(Epoch, ScopeHash)>,
    /// Changes of the group under way.
    staged: Vec<Change>,
    snapshot: Option<Snapshot>,
}

/// A snapshot under way.
#[derive(Debug)]
struct Snapshot {
    covers: BucketSet,
    seen: HashSet<ObjectKey>,
}

/// What follows from a frame.
#[derive(Debug)]
pub(crate) enum Effect {
    /// The bus has answered.
    Welcome { session: u64, mode: Mode, reason: String, bookmark_interval: Duration },
    /// What should be here has changed. With a position: it is exactly this now.
    Changes { changes: Vec<Change>, position: Option<Position> },
    /// Nothing changed, and it is exact here.
    Exact { position: Position, publishers: Vec<v1::PublisherAge> },
    /// What is held after these changes is not what the bus holds.
    Mismatch { changes: Vec<Change>, mismatch: Mismatch },
    /// What follows is in another scope.
    ScopeChanged,
    /// The bus has lost a report.
    ReportWanted,
    /// The bus stops; come back after this long.
    Drain { retry_after: Duration, reason: String },
    /// It lives, and nothing more.
    Alive,
}

/// What the bus holds, and what is held here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the bus has {theirs_objects} objects with digest {theirs} at revision {revision}, here are {ours_objects} with {ours}"
)]
pub(crate) struct Mismatch {
    pub(crate) revision: Revision,
    pub(crate) theirs: Digest,
    pub(crate) theirs_objects: u64,
    pub(crate) ours: Digest,
    pub(crate) ours_objects: u64,
}

/// Why a frame made no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Nonsense {
    #[error("the bus sent an object that is not well-formed")]
    Object(#[from] Invalid),
    #[error("the bus sent {0}")]
    Frame(&'static str),
}

// === impl Mirror ===

impl Mirror {
    /// What was held before a restart.
    pub(crate) fn restore(desired: impl IntoIterator<Item = Arc<Item>>, position: Option<Position>) -> Self {
        let mut mirror = Self { position, ..Self::default() };
        for item in desired {
            mirror.put(item);
        }
        mirror
    }

    /// What to offer when subscribing; none if nothing is held.
    pub(crate) fn resume(&self) -> Option<v1::Resume> {
        if self.held.is_empty() && self.position.is_none() {
            return None;
        }
        let mut origins: BTreeMap<&str, BTreeSet<&Kind>> = BTreeMap::new();
        for item in self.held.values() {
            origins.entry(&item.object.manager).or_default().insert(item.key().kind());
        }
        let origins = origins.into_iter().filter(|(manager, _)| !manager.is_empty());
        Some(v1::Resume {
            position: self.position.map(Into::into),
            root: self.root.as_bytes().to_vec().into(),
            buckets: self.buckets.to_vec().into(),
            origins: origins
                .map(|(manager, kinds)| v1::Origin {
                    manager: manager.to_owned(),
                    kinds: kinds.into_iter().map(ToString::to_string).collect(),
                })
                .collect(),
        })
    }

    /// Its position can no longer be believed: the next answer compares everything.
    pub(crate) fn distrust(&mut self) {
        self.position = None;
    }

    /// The connection is gone, and with it the group under way.
    pub(crate) fn disconnect(&mut self) {
        self.staged.clear();
        self.snapshot = None;
        self.session = None;
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.position
    }

    /// How far it is in this session.
    pub(crate) fn reached(&self) -> Revision {
        self.reached
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.held.values()
    }

    /// Takes a frame.
    pub(crate) fn take(&mut self, frame: v1::Frame) -> Result<Effect, Nonsense> {
        match frame.frame {
            // A frame of a kind that came later than this program.
            None => Ok(Effect::Alive),
            Some(Frame::Welcome(welcome)) => self.welcome(welcome),
            Some(Frame::SnapshotBegin(begin)) => self.begin_snapshot(&begin),
            Some(Frame::Batch(batch)) => self.batch(batch),
            Some(Frame::SnapshotEnd(end)) => self.end_snapshot(&end),
            Some(Frame::Bookmark(bookmark)) => self.bookmark(bookmark),
            Some(Frame::Notice(notice)) => Ok(self.notice(notice)),
        }
    }

    fn welcome(&mut self, welcome: v1::Welcome) -> Result<Effect, Nonsense> {
        let position = welcome.position.as_ref().ok_or(Nonsense::Frame("a welcome without a position"))?;
        let Position { epoch, scope, .. } = position.into();
        self.session = Some((epoch, scope));
        let mode = welcome.mode();
        self.reached = match (mode, self.position) {
            (Mode::Delta, Some(position)) => position.revision,
            _ => Revision::ZERO,
        };
        Ok(Effect::Welcome {
            session: welcome.session,
            mode,
            reason: welcome.reason,
            bookmark_interval: Duration::from_millis(welcome.bookmark_interval_ms.into()),
        })
    }

    fn begin_snapshot(&mut self, begin: &v1::SnapshotBegin) -> Result<Effect, Nonsense> {
        let covers = match &*begin.buckets {
            [] => BucketSet::ALL,
            buckets => BucketSet::from_slice(buckets).ok_or(Nonsense::Frame("a snapshot without 256 buckets"))?,
        };
        self.staged.clear();
        self.snapshot = Some(Snapshot { covers, seen: HashSet::new() });
        // From here on it holds some of the old and some of the new.
        self.position = None;
        Ok(Effect::Changes { changes: Vec::new(), position: None })
    }

    fn batch(&mut self, batch: v1::Batch) -> Result<Effect, Nonsense> {
        let position = match batch.revision {
            0 => None,
            revision => Some(self.here(Revision(revision))?),
        };
        let mut changes = Vec::with_capacity(batch.events.len());
        for event in batch.events {
            match event.change {
                // A change of a kind that came later than this program; the digest will tell.
                None => {}
                Some(WireChange::Put(object)) => {
                    let digest = Digest::from_slice(&event.digest).ok_or(Nonsense::Frame("a put without a digest"))?;
                    changes.push(Change::Put(Item::new(object, digest)?));
                }
                Some(WireChange::Delete(removal)) => {
                    let v1::Removal { kind, namespace, name, .. } = removal;
                    changes.push(Change::Delete(ObjectKey::new(Kind::new(&kind)?, &namespace, &name)?));
                }
            }
        }
        if let Some(snapshot) = &mut self.snapshot {
            for change in &changes {
                match change {
                    Change::Put(item) => snapshot.seen.insert(item.key().clone()),
                    Change::Delete(key) => snapshot.seen.remove(key),
                };
            }
            let changes = self.perform(changes);
            return Ok(if changes.is_empty() { Effect::Alive } else { Effect::Changes { changes, position: None } });
        }
        self.staged.append(&mut changes);
        let Some(position) = position else { return Ok(Effect::Alive) };
        let staged = std::mem::take(&mut self.staged);
        let changes = self.perform(staged);
        self.arrive(position);
        Ok(Effect::Changes { changes, position: Some(position) })
    }

    fn end_snapshot(&mut self, end: &v1::SnapshotEnd) -> Result<Effect, Nonsense> {
        let position = self.here(Revision(end.revision))?;
        let snapshot = self.snapshot.take().ok_or(Nonsense::Frame("the end of a snapshot that never began"))?;
        let unseen =
            |item: &&Arc<Item>| snapshot.covers.contains(item.digest.bucket()) && !snapshot.seen.contains(item.key());
        let sweep = self.held.values().filter(unseen).map(|item| Change::Delete(item.key().clone())).collect();
        let changes = self.perform(sweep);
        match self.check(position.revision, &end.digest, end.objects) {
            Err(mismatch) => Ok(Effect::Mismatch { changes, mismatch }),
            Ok(()) => {
                self.arrive(position);
                Ok(Effect::Changes { changes, position: Some(position) })
            }
        }
    }

    fn bookmark(&mut self, bookmark: v1::Bookmark) -> Result<Effect, Nonsense> {
        let position = self.here(Revision(bookmark.revision))?;
        match self.check(position.revision, &bookmark.digest, bookmark.objects) {
            Err(mismatch) => Ok(Effect::Mismatch { changes: Vec::new(), mismatch }),
            Ok(()) => {
                self.arrive(position);
                Ok(Effect::Exact { position, publishers: bookmark.publishers })
            }
        }
    }

    fn notice(&mut self, notice: v1::Notice) -> Effect {
        match notice.notice {
            None => Effect::Alive,
            Some(Notice::Drain(drain)) => {
                Effect::Drain { retry_after: Duration::from_millis(drain.retry_after_ms), reason: drain.reason }
            }
            Some(Notice::ScopeChanged(changed)) => {
                if let Some((_, scope)) = &mut self.session {
                    *scope = ScopeHash(changed.scope);
                }
                self.staged.clear();
                // If one was under way, it begins again.
                self.snapshot = None;
                // What it holds is exact, but in the scope before.
                self.position = None;
                self.reached = Revision::ZERO;
                Effect::ScopeChanged
            }
            Some(Notice::ReportWanted(_)) => Effect::ReportWanted,
            Some(Notice::GroupRestarted(_)) => {
                self.staged.clear();
                Effect::Alive
            }
        }
    }

    /// Makes changes, and says which of them were any.
    fn perform(&mut self, changes: Vec<Change>) -> Vec<Change> {
        let mut real = Vec::with_capacity(changes.len());
        for change in changes {
            let differs = match &change {
                Change::Put(item) => {
                    let same = self.held.get(item.key()).is_some_and(|held| held.is_same(item));
                    if !same {
                        self.put(item.clone());
                    }
                    !same
                }
                Change::Delete(key) => self.drop(key),
            };
            if differs {
                real.push(change);
            }
        }
        real
    }

    fn put(&mut self, item: Arc<Item>) {
        self.toggle(item.digest);
        if let Some(old) = self.held.insert(item.key().clone(), item) {
            self.toggle(old.digest);
        }
    }

    fn drop(&mut self, key: &ObjectKey) -> bool {
        let Some(old) = self.held.remove(key) else { return false };
        self.toggle(old.digest);
        true
    }

    fn toggle(&mut self, leaf: Digest) {
        self.buckets.toggle(leaf);
        self.root.toggle(leaf);
    }

    fn here(&self, revision: Revision) -> Result<Position, Nonsense> {
        let (epoch, scope) = self.session.ok_or(Nonsense::Frame("something before its welcome"))?;
        Ok(Position { epoch, revision, scope })
    }

    fn arrive(&mut self, position: Position) {
        self.position = Some(position);
        self.reached = position.revision;
    }

    /// Proves that what is held is what the bus holds.
    fn check(&mut self, revision: Revision, digest: &[u8], objects: u64) -> Result<(), Mismatch> {
        let theirs = Digest::from_slice(digest).unwrap_or_default();
        let ours_objects = self.held.len() as u64;
        if theirs == self.root && objects == ours_objects {
            return Ok(());
        }
        self.distrust();
        Err(Mismatch { revision, theirs, theirs_objects: objects, ours: self.root, ours_objects })
    }
}
