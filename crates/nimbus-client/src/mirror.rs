//! The mirror: what the bus says this subscriber should have, exactly, and how far it has read.
//!
//! No I/O: frames go in, and what follows from them comes out. Changes of a group are kept aside until the group is
//! complete; a snapshot is taken as it comes, and what was not in it goes at its end.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use nimbus_core::{
    BucketSet, Buckets, Digest, Epoch, Invalid, Kind, ObjectKey, Position, Revision, ScopeHash,
    planted::{self, Bug},
};
use nimbus_wire::v1::{self, Mode, event::Change as WireChange, frame::Frame, notice::Notice};

use crate::{held::Held, item::Item};

/// What the bus says this subscriber should have.
#[derive(Debug)]
pub struct Mirror<T = Arc<Item>> {
    held: HashMap<ObjectKey, T>,
    buckets: Buckets,
    root: Digest,
    /// Where it is exactly; none while a snapshot is being taken, or if it never was.
    position: Option<Position>,
    /// How far it is in this session; watermarks never exceed it.
    reached: Revision,
    /// Epoch and scope of this session.
    session: Option<(Epoch, ScopeHash)>,
    /// Changes of the group under way.
    staged: Vec<Change<T>>,
    snapshot: Option<Snapshot>,
    /// Some of what it should hold was read before this mirror was: digests prove nothing.
    partial: bool,
    /// A new revision of what is otherwise the same is a change.
    by_revision: bool,
    /// The history that the revisions of what is held are of.
    history: Option<Epoch>,
}

/// A change of what should be here. Those of one transaction come together.
#[derive(Debug, Clone, PartialEq)]
pub enum Change<T = Arc<Item>> {
    /// It is new or different.
    Put(T),
    /// It is gone.
    Delete(ObjectKey),
}

/// A snapshot under way.
#[derive(Debug)]
struct Snapshot {
    covers: BucketSet,
    seen: HashSet<ObjectKey>,
}

/// What follows from a frame.
#[derive(Debug)]
pub enum Effect<T = Arc<Item>> {
    /// The bus has answered.
    Welcome {
        /// Names the subscription in reports.
        session: u64,
        /// What follows.
        mode: Mode,
        /// What there was when the bus answered is there at this revision; zero if it has to wait for its publishers.
        head: Revision,
        /// Why, for people.
        reason: String,
        /// How often the bus shows that it lives.
        bookmark_interval: Duration,
    },
    /// What should be here has changed. With a position: it is exactly this now.
    Changes {
        /// What has changed.
        changes: Vec<Change<T>>,
        /// Where it is exact.
        position: Option<Position>,
    },
    /// Nothing changed, and it is exact here.
    Exact {
        /// Where.
        position: Position,
        /// How long each publisher has been silent.
        publishers: Vec<v1::PublisherAge>,
    },
    /// What is held after these changes is not what the bus holds.
    Mismatch {
        /// What has changed.
        changes: Vec<Change<T>>,
        /// How they differ.
        mismatch: Mismatch,
    },
    /// What follows is in another scope.
    ScopeChanged,
    /// The bus has lost a report.
    ReportWanted,
    /// The bus stops; come back after this long.
    Drain {
        /// Come back after this long.
        retry_after: Duration,
        /// Why, for people.
        reason: String,
    },
    /// It lives, and nothing more.
    Alive,
}

/// What the bus holds, and what is held here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the bus has {theirs_objects} objects with digest {theirs} at revision {revision}, here are {ours_objects} with {ours}"
)]
pub struct Mismatch {
    /// Where they differ.
    pub revision: Revision,
    /// The digest of what the bus holds.
    pub theirs: Digest,
    /// How many objects those are.
    pub theirs_objects: u64,
    /// The digest of what is held here.
    pub ours: Digest,
    /// How many objects those are.
    pub ours_objects: u64,
}

/// Why a frame made no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Nonsense {
    /// An object is not well-formed.
    #[error("the bus sent an object that is not well-formed")]
    Object(#[from] Invalid),
    /// A frame is not, or comes at the wrong time.
    #[error("the bus sent {0}")]
    Frame(&'static str),
}

// === impl Mirror ===

impl<T> Default for Mirror<T> {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            buckets: Buckets::default(),
            root: Digest::ZERO,
            position: None,
            reached: Revision::ZERO,
            session: None,
            staged: Vec::new(),
            snapshot: None,
            partial: false,
            by_revision: false,
            history: None,
        }
    }
}

impl<T: Held> Mirror<T> {
    /// For those who write what they have read, if nobody else has written since: within one history, a new revision is a
    /// change, even if everything else is as it was before.
    ///
    /// With a position, it goes on from there, holding nothing: what was read before is elsewhere. Then digests are not
    /// compared, until a snapshot has been taken.
    pub fn observe(position: Option<Position>) -> Self {
        let history = position.map(|position| position.epoch);
        Self { position, partial: position.is_some(), by_revision: true, history, ..Self::default() }
    }

    /// What was held before a restart.
    pub fn restore(desired: impl IntoIterator<Item = T>, position: Option<Position>) -> Self {
        let mut mirror = Self { position, ..Self::default() };
        for item in desired {
            mirror.put(item);
        }
        mirror
    }

    /// What to offer when subscribing; none if nothing is held.
    pub fn resume(&self) -> Option<v1::Resume> {
        if self.held.is_empty() && self.position.is_none() {
            return None;
        }
        let mut origins: BTreeMap<&str, BTreeSet<&Kind>> = BTreeMap::new();
        for item in self.held.values() {
            origins.entry(item.manager()).or_default().insert(item.key().kind());
        }
        let origins = origins.into_iter().filter(|(manager, _)| !manager.is_empty());
        Some(v1::Resume {
            position: self.position.map(Into::into),
            root: if self.partial { Vec::new() } else { self.root.as_bytes().to_vec() }.into(),
            buckets: if self.partial { Vec::new() } else { self.buckets.to_vec() }.into(),
            origins: origins
                .map(|(manager, kinds)| v1::Origin {
                    manager: manager.to_owned(),
                    kinds: kinds.into_iter().map(ToString::to_string).collect(),
                })
                .collect(),
        })
    }

    /// Its position can no longer be believed: the next answer compares everything.
    pub fn distrust(&mut self) {
        self.position = None;
    }

    /// The connection is gone, and with it the group under way.
    pub fn disconnect(&mut self) {
        self.staged.clear();
        self.snapshot = None;
        self.session = None;
    }

    /// Whether digests prove nothing yet, because some of what it should hold was read before.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Where it is exactly; none while a snapshot is being taken, or if it never was.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// How far it is in this session.
    pub fn reached(&self) -> Revision {
        self.reached
    }

    /// How many objects are held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Everything that is held.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.held.values()
    }

    /// Takes a frame.
    ///
    /// # Errors
    /// If it makes no sense; what is held stays as it was, and the connection should be given up.
    pub fn take(&mut self, frame: v1::Frame) -> Result<Effect<T>, Nonsense> {
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

    fn welcome(&mut self, welcome: v1::Welcome) -> Result<Effect<T>, Nonsense> {
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
            head: Revision(position.revision),
            reason: welcome.reason,
            bookmark_interval: Duration::from_millis(welcome.bookmark_interval_ms.into()),
        })
    }

    fn begin_snapshot(&mut self, begin: &v1::SnapshotBegin) -> Result<Effect<T>, Nonsense> {
        let covers = match &*begin.buckets {
            [] => BucketSet::ALL,
            buckets => BucketSet::from_slice(buckets).ok_or(Nonsense::Frame("a snapshot without 256 buckets"))?,
        };
        if self.partial && covers != BucketSet::ALL {
            return Err(Nonsense::Frame("a snapshot of some buckets, though none were offered"));
        }
        if std::mem::take(&mut self.partial) {
            // All of it comes again, what is elsewhere included.
            (self.held, self.buckets, self.root) = (HashMap::new(), Buckets::default(), Digest::ZERO);
        }
        self.staged.clear();
        self.snapshot = Some(Snapshot { covers, seen: HashSet::new() });
        // From here on it holds some of the old and some of the new.
        self.position = None;
        Ok(Effect::Changes { changes: Vec::new(), position: None })
    }

    fn batch(&mut self, batch: v1::Batch) -> Result<Effect<T>, Nonsense> {
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
                    changes.push(Change::Put(T::read(object, digest)?));
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
        let Some(position) = position else {
            if planted::is(Bug::LoseHalfGroup) {
                self.staged.clear();
            }
            return Ok(Effect::Alive);
        };
        let staged = std::mem::take(&mut self.staged);
        let changes = self.perform(staged);
        self.arrive(position);
        Ok(Effect::Changes { changes, position: Some(position) })
    }

    fn end_snapshot(&mut self, end: &v1::SnapshotEnd) -> Result<Effect<T>, Nonsense> {
        let position = self.here(Revision(end.revision))?;
        let snapshot = self.snapshot.take().ok_or(Nonsense::Frame("the end of a snapshot that never began"))?;
        let covers = if planted::is(Bug::SweepUncovered) { BucketSet::ALL } else { snapshot.covers };
        let unseen = |item: &&T| covers.contains(item.digest().bucket()) && !snapshot.seen.contains(item.key());
        let unseen = |item: &&T| unseen(item) && !planted::is(Bug::SweepNothing);
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

    fn bookmark(&mut self, bookmark: v1::Bookmark) -> Result<Effect<T>, Nonsense> {
        let position = self.here(Revision(bookmark.revision))?;
        match self.check(position.revision, &bookmark.digest, bookmark.objects) {
            Err(mismatch) => Ok(Effect::Mismatch { changes: Vec::new(), mismatch }),
            Ok(()) => {
                self.arrive(position);
                Ok(Effect::Exact { position, publishers: bookmark.publishers })
            }
        }
    }

    fn notice(&mut self, notice: v1::Notice) -> Effect<T> {
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
    fn perform(&mut self, changes: Vec<Change<T>>) -> Vec<Change<T>> {
        let mut real = Vec::with_capacity(changes.len());
        for change in changes {
            let differs = match &change {
                Change::Put(item) => {
                    let differs = self.held.get(item.key()).is_none_or(|held| self.differs(held, item));
                    if differs {
                        self.put(item.kept());
                    }
                    differs
                }
                // What was read before this mirror was may be gone now.
                Change::Delete(key) => self.drop(key) || self.partial,
            };
            if differs {
                real.push(change);
            }
        }
        real
    }

    /// Whether something has to be done to get from one to the other.
    fn differs(&self, held: &T, item: &T) -> bool {
        let epoch = self.session.map(|(epoch, _)| epoch);
        held.digest() != item.digest()
            || held.uid() != item.uid()
            || (self.by_revision && self.history == epoch && held.revision() != item.revision())
    }

    fn put(&mut self, item: T) {
        self.toggle(item.digest());
        if let Some(old) = self.held.insert(item.key().clone(), item) {
            self.toggle(old.digest());
        }
    }

    fn drop(&mut self, key: &ObjectKey) -> bool {
        let Some(old) = self.held.remove(key) else { return false };
        self.toggle(old.digest());
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
        self.history = Some(position.epoch);
    }

    /// Proves that what is held is what the bus holds.
    fn check(&mut self, revision: Revision, digest: &[u8], objects: u64) -> Result<(), Mismatch> {
        let theirs = Digest::from_slice(digest).unwrap_or_default();
        let ours_objects = self.held.len() as u64;
        if self.partial || (theirs == self.root && objects == ours_objects) {
            return Ok(());
        }
        self.distrust();
        Err(Mismatch { revision, theirs, theirs_objects: objects, ours: self.root, ours_objects })
    }
}
