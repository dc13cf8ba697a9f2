//! A group: the changes that take a reader from one state of its feed to another, in frames that many readers share.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use nimbus_core::{
    BucketSet, ObjectKey, Revision,
    planted::{self, Bug},
};

use crate::{
    frame::{self, Item},
    lane::Lane,
    record::{Grave, Record},
    refs::referents_first,
    sync::{ArcSwapOption, AtomicBool, Mutex, Ordering},
};

/// What a group leads from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// From a position to the newest state.
    After(Revision),
    /// From nothing to the newest state, in these buckets.
    Snapshot(BucketSet),
}

/// Changes that lead a reader from one state to another, until they are revoked.
#[derive(Debug)]
pub(crate) struct Group {
    contents: ArcSwapOption<Contents>,
    bytes: usize,
    objects: usize,
    encoded: Mutex<HashMap<(usize, Revision), Encoded>>,
    /// Somebody has read on since the last time that room was needed.
    moving: AtomicBool,
    /// Room was made for it.
    counted: AtomicBool,
}

/// Changes in the order in which they are sent: puts, referents first; then removals, referents last.
#[derive(Debug)]
pub(crate) struct Contents {
    observer: bool,
    puts: Vec<Arc<Record>>,
    removals: Vec<Arc<Grave>>,
    /// Ranges of puts, then of removals, that make one frame each.
    frames: Vec<Range<usize>>,
    put_frames: usize,
    /// What the puts refer to, once somebody asked.
    needed: OnceLock<HashSet<ObjectKey>>,
}

/// A frame that was encoded: kept if it is small, else for as long as some reader is sending it.
#[derive(Debug)]
enum Encoded {
    Kept(Bytes),
    Lent(Weak<Vec<u8>>),
}

/// Keeps the bytes of a frame alive while anybody sends them.
struct Lent(Arc<Vec<u8>>);

/// Groups up to this size keep their frames: the live tail is read by all at nearly the same time, but not quite.
const KEEP_BYTES: usize = 64 << 10;

// === impl Group ===

impl Group {
    /// Collects what changed in some lanes.
    pub(crate) fn read(lanes: &[Arc<Lane>], span: Span, observer: bool, frame_bytes: usize) -> Self {
        let (mut puts, mut removals) = (Vec::new(), Vec::new());
        for lane in lanes {
            match span {
                Span::After(from) => {
                    puts.extend(lane.live_after(from).cloned());
                    removals.extend(lane.ended_after(from).cloned());
                }
                Span::Snapshot(BucketSet::ALL) => puts.extend(lane.live_after(Revision::ZERO).cloned()),
                Span::Snapshot(buckets) => {
                    let inside = |record: &&Arc<Record>| buckets.contains(record.leaf(observer).bucket());
                    puts.extend(lane.live_after(Revision::ZERO).filter(inside).cloned());
                }
            }
        }
        if lanes.len() > 1 {
            settle(&mut puts, &mut removals);
        }
        Self::new(puts, removals, observer, frame_bytes)
    }

    /// Puts changes into the order in which they are sent.
    pub(crate) fn new(
        mut puts: Vec<Arc<Record>>,
        mut removals: Vec<Arc<Grave>>,
        observer: bool,
        frame_bytes: usize,
    ) -> Self {
        if !planted::is(Bug::ReferrersFirst) {
            referents_first(&mut puts);
            referents_first(&mut removals);
            removals.reverse();
        }
        let (mut frames, put_bytes) = cut(puts.iter().map(|put| Item::Put(put, observer).len()), frame_bytes);
        let put_frames = frames.len();
        let (removal_frames, removal_bytes) = cut(removals.iter().map(|end| Item::Removal(end).len()), frame_bytes);
        frames.extend(removal_frames);
        let objects = puts.len();
        let contents = Contents { observer, puts, removals, frames, put_frames, needed: OnceLock::new() };
        Self {
            contents: ArcSwapOption::from_pointee(contents),
            bytes: put_bytes + removal_bytes,
            objects,
            encoded: Mutex::new(HashMap::new()),
            moving: AtomicBool::new(true),
            counted: AtomicBool::new(false),
        }
    }

    /// The changes, unless they were revoked.
    pub(crate) fn contents(&self) -> Option<Arc<Contents>> {
        self.contents.load_full()
    }

    /// Objects that are sent.
    pub(crate) fn objects(&self) -> usize {
        self.objects
    }

    /// Bytes of all frames, nearly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the group away from readers that have stalled in it; they begin again from where they were.
    pub(crate) fn revoke(&self) {
        self.contents.store(None);
        self.encoded.lock().clear();
    }

    /// Counts the group. Says whether it was counted already.
    pub(crate) fn count(&self) -> bool {
        self.counted.swap(true, Ordering::Relaxed)
    }

    /// Whether somebody has read on since this was last asked.
    pub(crate) fn take_moving(&self) -> bool {
        self.moving.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.contents.load().is_none()
    }

    /// One frame as it goes onto the wire; if it is the last one of all, with the revision that it completes.
    /// `None` if the group was revoked.
    pub(crate) fn frame(&self, at: usize, completes: Option<Revision>) -> Option<Bytes> {
        let contents = self.contents()?;
        self.moving.store(true, Ordering::Relaxed);
        let key = (at, completes.unwrap_or(Revision::ZERO));
        match self.encoded.lock().get(&key) {
            Some(Encoded::Kept(bytes)) => return Some(bytes.clone()),
            Some(Encoded::Lent(weak)) => {
                if let Some(buffer) = weak.upgrade() {
                    return Some(Bytes::from_owner(Lent(buffer)));
                }
            }
            None => {}
        }
        let buffer = contents.encode(at, completes);
        if self.bytes <= KEEP_BYTES {
            let bytes = Bytes::from(buffer);
            self.encoded.lock().insert(key, Encoded::Kept(bytes.clone()));
            return Some(bytes);
        }
        let buffer = Arc::new(buffer);
        self.encoded.lock().insert(key, Encoded::Lent(Arc::downgrade(&buffer)));
        Some(Bytes::from_owner(Lent(buffer)))
    }
}

// === impl Contents ===

impl Contents {
    /// Joins the changes of feeds that one reader reads, where they depend on one another.
    pub(crate) fn join(all: &[Arc<Self>], frame_bytes: usize) -> Group {
        let mut puts: Vec<_> = all.iter().flat_map(|contents| &contents.puts).cloned().collect();
        let mut removals: Vec<_> = all.iter().flat_map(|contents| &contents.removals).cloned().collect();
        settle(&mut puts, &mut removals);
        let observer = all.first().is_some_and(|contents| contents.observer);
        Group::new(puts, removals, observer, frame_bytes)
    }

    /// Whether the two can be sent as they are: the puts of `self`, all of `other`, the removals of `self`.
    pub(crate) fn nests(&self, other: &Self) -> bool {
        let inner: HashSet<_> = other.puts.iter().map(|put| put.to_key()).collect();
        let moved_in = self.removals.iter().any(|end| inner.contains(&end.key));
        if moved_in || inner.iter().any(|key| self.needed().contains(key)) {
            return false;
        }
        if other.removals.is_empty() {
            return true;
        }
        let outer: HashSet<_> = self.puts.iter().map(|put| put.to_key()).collect();
        let moved_out = other.removals.iter().any(|end| outer.contains(&end.key));
        let ended: HashSet<_> = other.removals.iter().map(|end| &end.key).collect();
        let ends_before_referrer = self
            .removals
            .iter()
            .any(|end| ended.contains(&end.key) || end.needs().any(|key| ended.contains(key)));
        !moved_out && !ends_before_referrer
    }

    /// Changes that are sent.
    pub(crate) fn len(&self) -> usize {
        self.puts.len() + self.removals.len()
    }

    /// Frames with puts.
    pub(crate) fn put_frames(&self) -> Range<usize> {
        0..self.put_frames
    }

    /// Frames with removals.
    pub(crate) fn removal_frames(&self) -> Range<usize> {
        self.put_frames..self.frames.len()
    }

    fn encode(&self, at: usize, completes: Option<Revision>) -> Vec<u8> {
        let range = self.frames[at].clone();
        if at < self.put_frames {
            frame::batch(self.puts[range].iter().map(|put| Item::Put(put, self.observer)), completes)
        } else {
            frame::batch(self.removals[range].iter().map(|end| Item::Removal(end)), completes)
        }
    }

    fn needed(&self) -> &HashSet<ObjectKey> {
        self.needed
            .get_or_init(|| self.puts.iter().flat_map(|put| put.needs()).cloned().collect())
    }
}

// === impl Lent ===

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What an object went through in several lanes comes down to one change: it moved, or it is gone.
fn settle(puts: &mut [Arc<Record>], removals: &mut Vec<Arc<Grave>>) {
    puts.sort_by_key(|put| put.slot());
    removals.sort_by_key(|end| end.slot);
    if removals.is_empty() {
        return;
    }
    let alive: HashSet<_> = puts.iter().map(|put| put.to_key()).collect();
    let mut ended = HashSet::new();
    removals.reverse();
    removals.retain(|end| !alive.contains(&end.key) && ended.insert(end.key.clone()));
    removals.reverse();
}

/// Divides items into frames of at most `max` bytes, or of one item.
fn cut(sizes: impl Iterator<Item = usize>, max: usize) -> (Vec<Range<usize>>, usize) {
    let max = max.saturating_sub(frame::ENVELOPE);
    let (mut frames, mut total, mut filled, mut start, mut end) = (Vec::new(), 0, 0, 0, 0);
    for size in sizes {
        if end > start && filled + size > max {
            frames.push(start..end);
            (start, filled) = (end, 0);
        }
        filled += size;
        total += size;
        end += 1;
    }
    if end > start {
        frames.push(start..end);
    }
    (frames, total)
}
