//! What a subscriber holds, kept as `docs/PROTOCOL.md` tells a reader to keep it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use anyhow::{Context as _, bail, ensure};
use nimbus_core::{BucketSet, Buckets, Digest};
use nimbus_wire::v1::{self, Mode, event::Change, frame::Frame, notice::Notice};
use prost::Message as _;

/// What a subscriber holds, and what it must remember in order to resume.
#[derive(Debug, Default)]
pub(crate) struct Held {
    objects: HashMap<Box<str>, Entry>,
    buckets: Buckets,
    /// Managers of what was ever held, with its kinds.
    origins: BTreeMap<String, BTreeSet<String>>,
    position: Option<v1::Position>,
    /// Epoch and scope of the answer that is under way.
    answer: v1::Position,
    /// The buckets of a snapshot that has begun and not ended.
    snapshot: Option<BucketSet>,
    /// What has come since the last position.
    pending: Vec<(Box<str>, Option<Entry>)>,
    pub(crate) session: u64,
    pub(crate) tally: Tally,
}

/// One object, by what tells it from any other version.
#[derive(Debug, Clone, Copy)]
struct Entry {
    digest: Digest,
    print: u64,
}

/// What has come in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) frames: u64,
    pub(crate) puts: u64,
    /// Deletes, and what snapshots swept.
    pub(crate) removals: u64,
    /// Bytes of frames, as gRPC messages with their prefix.
    pub(crate) bytes: u64,
    /// Groups that began again.
    pub(crate) restarts: u64,
}

/// What a frame meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Welcome(Mode),
    /// A group is complete at this revision.
    Group {
        revision: u64,
        events: u64,
    },
    /// A snapshot is complete; its digest was right.
    Snapshot,
    /// Everything is here up to this revision; the digest was right.
    Bookmark {
        revision: u64,
    },
    Nothing,
}

/// gRPC puts a flag and a length before each message.
const PREFIX: u64 = 5;

// === impl Held ===

impl Held {
    /// What to offer on a reconnect.
    pub(crate) fn resume(&self) -> Option<v1::Resume> {
        let position = self.position?;
        Some(v1::Resume {
            position: Some(position),
            root: self.buckets.root().as_bytes().to_vec().into(),
            buckets: self.buckets.to_vec().into(),
            origins: self.origins(),
        })
    }

    fn origins(&self) -> Vec<v1::Origin> {
        let origin = |(manager, kinds): (&String, &BTreeSet<String>)| v1::Origin {
            manager: manager.clone(),
            kinds: kinds.iter().cloned().collect(),
        };
        self.origins.iter().map(origin).collect()
    }

    /// Forgets what was not complete when the connection broke.
    pub(crate) fn disconnect(&mut self) {
        self.pending = Vec::new();
        self.snapshot = None;
        self.tally = Tally::default();
    }

    /// Takes a frame.
    pub(crate) fn take(&mut self, frame: v1::Frame) -> anyhow::Result<Progress> {
        self.tally.frames += 1;
        self.tally.bytes += frame.encoded_len() as u64 + PREFIX;
        match frame.frame.context("a frame without content")? {
            Frame::Welcome(welcome) => {
                self.session = welcome.session;
                self.answer = welcome.position.context("a welcome without a position")?;
                return Ok(Progress::Welcome(welcome.mode()));
            }
            Frame::SnapshotBegin(begin) => {
                let buckets = Some(&*begin.buckets).filter(|buckets| !buckets.is_empty());
                let buckets = buckets.map_or(Some(BucketSet::ALL), BucketSet::from_slice);
                self.snapshot = Some(buckets.context("a snapshot begins with malformed buckets")?);
                self.pending.clear();
            }
            Frame::Batch(batch) => return self.batch(batch),
            Frame::SnapshotEnd(end) => {
                let covered = self.snapshot.take().context("a snapshot ends that did not begin")?;
                self.sweep(&covered);
                self.commit(end.revision);
                self.check(&end.digest, end.objects)?;
                return Ok(Progress::Snapshot);
            }
            Frame::Bookmark(bookmark) => {
                ensure!(self.pending.is_empty() && self.snapshot.is_none(), "a bookmark within a group");
                self.commit(bookmark.revision);
                self.check(&bookmark.digest, bookmark.objects)?;
                return Ok(Progress::Bookmark { revision: bookmark.revision });
            }
            Frame::Notice(notice) => match notice.notice {
                Some(Notice::GroupRestarted(_)) => {
                    self.tally.restarts += 1;
                    self.pending.clear();
                }
                other => bail!("an unexpected notice: {other:?}"),
            },
        }
        Ok(Progress::Nothing)
    }

    /// Whether these objects, as listed, are exactly what is held.
    pub(crate) fn is_exactly(&self, listed: &[v1::Object]) -> bool {
        listed.len() == self.objects.len()
            && listed.iter().all(|object| {
                let key = key(&object.kind, &object.namespace, &object.name);
                self.objects.get(&key).is_some_and(|entry| entry.print == print(object.clone()))
            })
    }

    fn batch(&mut self, batch: v1::Batch) -> anyhow::Result<Progress> {
        for event in batch.events {
            match event.change.context("an event without a change")? {
                Change::Put(object) => {
                    self.tally.puts += 1;
                    let digest = Digest::from_slice(&event.digest).context("a put without a digest")?;
                    let key = key(&object.kind, &object.namespace, &object.name);
                    if !self.origins.get(&object.manager).is_some_and(|kinds| kinds.contains(&object.kind)) {
                        self.origins.entry(object.manager.clone()).or_default().insert(object.kind.clone());
                    }
                    self.pending.push((key, Some(Entry { digest, print: print(object) })));
                }
                Change::Delete(removal) => {
                    self.tally.removals += 1;
                    self.pending.push((key(&removal.kind, &removal.namespace, &removal.name), None));
                }
            }
        }
        if batch.revision == 0 {
            return Ok(Progress::Nothing);
        }
        ensure!(self.snapshot.is_none(), "a group is complete within a snapshot");
        let events = self.pending.len() as u64;
        self.commit(batch.revision);
        Ok(Progress::Group { revision: batch.revision, events })
    }

    /// Removes what a snapshot covers and does not have.
    fn sweep(&mut self, covered: &BucketSet) {
        let seen: HashSet<&str> = self.pending.iter().map(|(key, _)| &**key).collect();
        let covered = self.objects.iter().filter(|(_, entry)| covered.contains(entry.digest.bucket()));
        let gone: Vec<Box<str>> = covered.map(|(key, _)| key).filter(|key| !seen.contains(&***key)).cloned().collect();
        self.tally.removals += gone.len() as u64;
        gone.into_iter().for_each(|key| self.set(key, None));
    }

    fn commit(&mut self, revision: u64) {
        for (key, entry) in std::mem::take(&mut self.pending) {
            self.set(key, entry);
        }
        self.position = Some(v1::Position { revision, ..self.answer });
    }

    fn set(&mut self, key: Box<str>, entry: Option<Entry>) {
        let before = match entry {
            Some(entry) => self.objects.insert(key, entry),
            None => self.objects.remove(&key),
        };
        let digests = before.into_iter().chain(entry).map(|entry| entry.digest);
        digests.for_each(|digest| self.buckets.toggle(digest));
    }

    fn check(&self, digest: &[u8], objects: u64) -> anyhow::Result<()> {
        let (root, held) = (self.buckets.root(), self.objects.len());
        ensure!(held as u64 == objects, "the subscriber holds {held} objects, the bus says {objects}");
        ensure!(root.as_bytes()[..] == *digest, "the digest of what the subscriber holds is not what the bus says");
        Ok(())
    }
}

fn key(kind: &str, namespace: &str, name: &str) -> Box<str> {
    format!("{kind}/{namespace}/{name}").into()
}

/// Stands for everything in an object but its revision, which another bus counts in another way.
fn print(object: v1::Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    v1::Object { revision: 0, ..object }.encode_to_vec().hash(&mut hasher);
    hasher.finish()
}
