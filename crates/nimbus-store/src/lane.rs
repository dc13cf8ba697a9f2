//! A lane: the objects of one view that go to one address, in the order of their revisions.

use std::{cmp::Ordering, fmt, iter, ops::Bound, sync::Arc};

use imbl::OrdMap;
use nimbus_core::{
    AgentId, Buckets, Digest, ObjectKey, Revision, Selector, Uid,
    planted::{self, Bug},
};

use crate::{
    record::{Grave, Record, Slot},
    tree::{Item, Tree},
};

/// Whom the objects of a lane go to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// Observers: every object, whatever its audience.
    Observers,
    /// Every agent.
    Everyone,
    /// Agents whose labels match.
    Selector(Selector),
    /// One agent.
    Agent(AgentId),
}

/// Objects and tombstones in the order of their revisions, with a digest. A clone costs a few pointers.
#[derive(Debug, Clone)]
pub struct Lane {
    observers: bool,
    live: Tree<Lying>,
    graves: OrdMap<Slot, Arc<Grave>>,
    buried: OrdMap<ObjectKey, Slot>,
    root: Digest,
    /// Kept once the lane is large; a small one is summed up when somebody asks.
    buckets: Option<Arc<Buckets>>,
    bytes: u64,
    /// Objects that were put and ended here so far; says how much a reader was spared that reads only what is left.
    changes: ChangeCount,
    last: Revision,
}

/// An object where it lies in a lane: in the order of slots.
#[derive(Clone)]
struct Lying(Arc<Record>);

/// A count that is no part of what there is: two collections with the same contents may have another one.
#[derive(Clone, Copy, Default)]
struct ChangeCount(u64);

/// Below this, summing up costs less than the 4 KiB that the buckets would take in each of many small lanes.
const KEEP_BUCKETS_FROM: usize = 512;

// === impl Lane ===

impl Lane {
    pub(crate) fn new(address: &Address) -> Self {
        Self::empty(*address == Address::Observers)
    }

    fn empty(observers: bool) -> Self {
        Self {
            observers,
            live: Tree::new(),
            graves: OrdMap::new(),
            buried: OrdMap::new(),
            root: Digest::ZERO,
            buckets: None,
            bytes: 0,
            changes: ChangeCount::default(),
            last: Revision::ZERO,
        }
    }

    /// Adds an object that was not here, under its name. Returns since when readers may hold it: `slot`, or earlier if there is a
    /// tombstone of an earlier life that some reader has not seen.
    pub(crate) fn insert(&mut self, key: &ObjectKey, record: &Arc<Record>) -> Revision {
        let since = self.welcome(key, record);
        self.put(record);
        since
    }

    /// The same but for adding it, which [`Lane::put_all`] does.
    pub(crate) fn welcome(&mut self, key: &ObjectKey, record: &Arc<Record>) -> Revision {
        match self.unbury(key) {
            Some(grave) => grave.since,
            None => record.revision(),
        }
    }

    /// Adds objects that are not here, which have so many bytes each.
    pub(crate) fn put_all<'a>(&mut self, records: impl Iterator<Item = (&'a Arc<Record>, u64)>) {
        let Self { observers, live, root, buckets, bytes, changes, last, .. } = self;
        let mut buckets_mut = buckets.as_mut().map(Arc::make_mut);
        live.extend(records.map(|(record, size)| {
            *last = (*last).max(record.revision());
            *bytes += size;
            changes.0 += 1;
            let leaf = record.leaf(*observers);
            root.toggle(leaf);
            if let Some(buckets) = &mut buckets_mut {
                buckets.toggle(leaf);
            }
            Lying(record.clone())
        }));
        if buckets.is_none() && self.live.len() >= KEEP_BUCKETS_FROM {
            self.buckets = Some(Arc::new(self.sum()));
        }
    }

    /// Replaces an object that is here.
    pub(crate) fn replace(&mut self, old: Slot, record: &Arc<Record>) {
        self.take(old);
        self.put(record);
    }

    /// Ends an object that is here.
    pub(crate) fn bury(&mut self, old: Slot, grave: Arc<Grave>) {
        self.take(old);
        if planted::is(Bug::ForgetLeaving) && grave.out_of_scope {
            return;
        }
        self.inter(grave);
    }

    /// Adds a tombstone.
    pub(crate) fn inter(&mut self, grave: Arc<Grave>) {
        self.last = self.last.max(grave.slot.revision);
        self.changes.0 += 1;
        if planted::is(Bug::SkipTombstone) {
            return;
        }
        self.buried.insert(grave.key.clone(), grave.slot);
        self.graves.insert(grave.slot, grave);
    }

    /// Adds a tombstone in place of an earlier one of the same name.
    pub(crate) fn bury_again(&mut self, grave: Arc<Grave>) {
        self.unbury(&grave.key);
        self.inter(grave);
    }

    /// The tombstone in that place.
    pub(crate) fn grave(&self, slot: Slot) -> Option<&Arc<Grave>> {
        self.graves.get(&slot)
    }

    /// Forgets a tombstone, unless its name lives again or ended again since.
    pub(crate) fn forget(&mut self, key: &ObjectKey, slot: Slot) {
        if self.buried.get(key) == Some(&slot) {
            self.unbury(key);
        }
    }

    /// Objects that changed after `from`.
    pub fn live_after(&self, from: Revision) -> impl Iterator<Item = &Arc<Record>> {
        let from = Slot { revision: from.next(), seq: 0 };
        self.live.from(Bound::Included(from)).map(|Lying(record)| record)
    }

    /// Objects that ended after `from`, as far as a reader at `from` may hold them.
    pub fn ended_after(&self, from: Revision) -> impl Iterator<Item = &Arc<Grave>> {
        let after = self.graves.range(Slot { revision: from.next(), seq: 0 }..).map(|(_, grave)| grave);
        after.filter(move |grave| grave.since <= from)
    }

    /// The first change after `after`, ends included.
    pub(crate) fn next_after(&self, after: Revision) -> Option<Revision> {
        let from = Slot { revision: after.next(), seq: 0 };
        let live = self.live.from(Bound::Included(from)).next().map(|Lying(record)| record.revision());
        let ended = self.graves.range(from..).next().map(|(slot, _)| slot.revision);
        live.into_iter().chain(ended).min()
    }

    /// What ended at `at`.
    pub(crate) fn ended_at(&self, at: Revision) -> impl Iterator<Item = &ObjectKey> {
        let ended = self.graves.range(Slot { revision: at, seq: 0 }..);
        ended.take_while(move |(slot, _)| slot.revision == at).map(|(_, grave)| &grave.key)
    }

    /// Whether anything here was last changed, or ended, at `at`.
    pub(crate) fn changed_at(&self, at: Revision) -> bool {
        match self.last.cmp(&at) {
            Ordering::Less => false,
            // It may have ended there, and been forgotten since.
            Ordering::Equal => !self.is_void(),
            Ordering::Greater => self.next_after(Revision(at.0.saturating_sub(1))) == Some(at),
        }
    }

    /// When the object of that name ended here.
    pub(crate) fn end_of(&self, key: &ObjectKey) -> Option<Revision> {
        self.buried.get(key).map(|slot| slot.revision)
    }

    /// The objects of this lane that pass a filter.
    pub(crate) fn narrowed(&self, passes: impl Fn(&Record) -> bool) -> Self {
        let mut lane = Self::empty(self.observers);
        self.live
            .iter()
            .filter(|Lying(record)| passes(record))
            .for_each(|Lying(record)| lane.put(record));
        lane
    }

    /// The last life of a name that is gone.
    pub(crate) fn last_uid(&self, key: &ObjectKey) -> Option<&Uid> {
        let grave = self.graves.get(self.buried.get(key)?)?;
        Some(&grave.uid)
    }

    /// The digest of all objects.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// The digests of all objects, by bucket.
    pub fn buckets(&self) -> Arc<Buckets> {
        self.buckets.clone().unwrap_or_else(|| Arc::new(self.sum()))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether nothing would be lost if the lane were gone.
    pub fn is_void(&self) -> bool {
        self.live.is_empty() && self.graves.is_empty()
    }

    /// Bytes of all encoded objects.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Objects that were put and ended here so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.0
    }

    /// The revision of the last change.
    pub fn last(&self) -> Revision {
        self.last
    }

    fn put(&mut self, record: &Arc<Record>) {
        self.put_all(iter::once((record, record.size() as u64)));
    }

    fn take(&mut self, slot: Slot) {
        let Lying(record) = self.live.remove(slot).expect("a view knows the slots of its objects");
        self.bytes -= record.size() as u64;
        let leaf = record.leaf(self.observers);
        self.root.toggle(leaf);
        if let Some(buckets) = &mut self.buckets {
            Arc::make_mut(buckets).toggle(leaf);
        }
    }

    fn unbury(&mut self, key: &ObjectKey) -> Option<Arc<Grave>> {
        if self.buried.is_empty() {
            return None;
        }
        let slot = self.buried.remove(key)?;
        self.graves.remove(&slot)
    }

    fn sum(&self) -> Buckets {
        let mut buckets = Buckets::default();
        self.live.iter().for_each(|Lying(record)| buckets.toggle(record.leaf(self.observers)));
        buckets
    }
}

// === impl Lying ===

impl Item for Lying {
    type Key<'a> = Slot;
    type Mark = Slot;

    fn key(&self) -> Slot {
        self.0.slot()
    }

    fn mark(&self) -> Slot {
        self.0.slot()
    }

    fn place(mark: &Slot) -> Slot {
        *mark
    }

    fn order(one: Slot, two: Slot) -> Ordering {
        one.cmp(&two)
    }
}

impl fmt::Debug for Lying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl ChangeCount ===

impl fmt::Debug for ChangeCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}
