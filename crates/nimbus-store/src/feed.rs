//! A feed: the lanes that equal subscriptions read, and the groups that they share.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Weak},
};

use nimbus_core::{AgentId, BucketSet, Buckets, Digest, Kind, Revision, Selector};

use crate::{
    filter::Filter,
    group::{Group, Span},
    lane::{Address, Lane},
    scope::{Scope, Viewer},
    state::State,
    sync::Mutex,
};

/// What makes two feeds the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FeedKey {
    kinds: Option<Arc<BTreeSet<Kind>>>,
    filter: Option<Arc<Filter>>,
    part: Part,
}

/// A scope is read in parts, so that an agent with objects of its own shares the rest with others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Observers,
    /// Objects for everyone and for these selectors.
    Shared(Arc<[Selector]>),
    /// Objects for one agent.
    Own(AgentId),
}

/// The lanes that equal subscriptions read.
#[derive(Debug)]
pub(crate) struct Feed {
    key: FeedKey,
    frame_bytes: usize,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    sight: Option<Arc<Sight>>,
    recent: VecDeque<(GroupKey, Arc<Group>)>,
    large: VecDeque<(GroupKey, Weak<Group>)>,
}

/// A span of a feed, the last change in it, and what there is after it. The last change alone does not name a state: an
/// object that ended leaves nothing behind if its tombstone was forgotten before anybody looked.
type GroupKey = (Span, Revision, Digest);

/// A feed in one state of the collection.
#[derive(Debug)]
pub(crate) struct Sight {
    /// The state in which it was seen, if it is shared.
    version: Option<u64>,
    /// They live for as long as the reader holds the state. Weak, or a feed that nobody reads on would keep an old one.
    lanes: Vec<Weak<Lane>>,
    /// The revision of the last change.
    pub(crate) last: Revision,
    pub(crate) root: Digest,
    pub(crate) objects: usize,
    pub(crate) bytes: u64,
    /// Changes that its lanes have seen, to be compared with those of another time.
    pub(crate) changes: u64,
    /// Changes before this are not known.
    pub(crate) floor: Revision,
}

/// All feeds that somebody reads, and the large groups that are being sent.
#[derive(Debug)]
pub(crate) struct Feeds {
    feeds: Mutex<HashMap<FeedKey, Weak<Feed>>>,
    large: Mutex<VecDeque<Weak<Group>>>,
    frame_bytes: usize,
    group_bytes: usize,
}

/// Readers of the live tail are a few groups apart at most; further behind they catch up with a group of their own.
const RECENT_GROUPS: usize = 4;

/// Groups above this part of what groups may take in all are not kept for latecomers, only shared by those who are
/// reading them: with the default of 512 MiB, above 1 MiB.
const LARGE_PART: usize = 512;

/// Groups above this part are counted, and may be revoked: with the default, above 64 KiB. Smaller ones are one frame or
/// two, which a reader takes at once.
const COUNTED_PART: usize = 8192;

// === impl FeedKey ===

impl FeedKey {
    /// The parts in which a scope is read: what is shared first, what is the reader's own last.
    pub(crate) fn parts(scope: &Scope, state: &State) -> Vec<Self> {
        let part = |part| Self { kinds: scope.kinds.clone(), filter: scope.filter.clone(), part };
        match &scope.viewer {
            Viewer::Observer => vec![part(Part::Observers)],
            Viewer::Agent { id, labels } => {
                let matching = state.selectors.matching(labels).into();
                vec![part(Part::Shared(matching)), part(Part::Own(id.clone()))]
            }
        }
    }
}

// === impl Feed ===

impl Feed {
    /// The feed in that state; `None` if other readers have seen a newer one already.
    pub(crate) fn sight(&self, state: &State) -> Option<Arc<Sight>> {
        let mut cache = self.cache.lock();
        let last = match &cache.sight {
            Some(sight) if sight.version == Some(state.version) => return Some(sight.clone()),
            Some(sight) if sight.version > Some(state.version) => return None,
            Some(sight) => sight.last,
            None => Revision::ZERO,
        };
        let sight = Arc::new(self.look(state, Some(state.version), last));
        cache.sight = Some(sight.clone());
        Some(sight)
    }

    /// The feed in that state, for one reader; nothing of it is shared.
    pub(crate) fn private_sight(&self, state: &State) -> Sight {
        self.look(state, None, Revision::ZERO)
    }

    /// The changes of a span, shared with whoever else needs them.
    ///
    /// Whoever sends it admits it first.
    pub(crate) fn group(&self, sight: &Sight, span: Span, feeds: &Feeds) -> Arc<Group> {
        let read = || {
            let lanes: Vec<_> = sight.lanes().collect();
            Arc::new(Group::read(&lanes, span, self.key.part == Part::Observers, self.frame_bytes))
        };
        if sight.version.is_none() {
            return read();
        }
        let key = (span, sight.last, sight.root);
        let mut cache = self.cache.lock();
        let fits = |(other, group): &&(GroupKey, Arc<Group>)| *other == key && !group.is_revoked();
        if let Some((_, group)) = cache.recent.iter().find(fits) {
            return group.clone();
        }
        cache.large.retain(|(_, group)| group.strong_count() > 0);
        let large = cache.large.iter().find(|(other, _)| *other == key).and_then(|(_, group)| group.upgrade());
        if let Some(group) = large.filter(|group| !group.is_revoked()) {
            return group;
        }
        let group = read();
        // The live tail is read by all at nearly the same time, but not quite; a snapshot by who happens to come.
        if feeds.is_large(&group) || matches!(span, Span::Snapshot(_)) {
            cache.large.push_back((key, Arc::downgrade(&group)));
        } else {
            cache.recent.push_back((key, group.clone()));
            if cache.recent.len() > RECENT_GROUPS {
                cache.recent.pop_front();
            }
        }
        group
    }

    /// `last` never goes back, although lanes disappear: readers compare it with where they are.
    fn look(&self, state: &State, version: Option<u64>, last: Revision) -> Sight {
        let addresses: Vec<Address> = match &self.key.part {
            Part::Observers => vec![Address::Observers],
            Part::Own(agent) => vec![Address::Agent(agent.clone())],
            Part::Shared(selectors) => {
                let selected = selectors.iter().cloned().map(Address::Selector);
                std::iter::once(Address::Everyone).chain(selected).collect()
            }
        };
        let mut sight = Sight {
            version,
            lanes: Vec::new(),
            last,
            root: Digest::ZERO,
            objects: 0,
            bytes: 0,
            changes: 0,
            floor: Revision::ZERO,
        };
        let mut look_at = |kind: &Kind| {
            let Some(view) = state.view(kind, self.key.filter.as_ref()) else { return };
            sight.floor = sight.floor.max(view.floor());
            for lane in addresses.iter().filter_map(|address| view.lane(address)).filter(|lane| !lane.is_void()) {
                sight.last = sight.last.max(lane.last());
                sight.root.toggle(lane.root());
                sight.objects += lane.len();
                sight.bytes += lane.bytes();
                sight.changes += lane.changes();
                sight.lanes.push(Arc::downgrade(lane));
            }
        };
        match &self.key.kinds {
            Some(kinds) => kinds.iter().for_each(&mut look_at),
            None => state.kinds.keys().for_each(&mut look_at),
        }
        sight
    }
}

// === impl Sight ===

impl Sight {
    /// The lanes, of a state that the caller holds.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = Arc<Lane>> {
        self.lanes.iter().map(|lane| lane.upgrade().expect("whoever looks at a state holds it"))
    }

    /// The digests of all objects, by bucket.
    pub(crate) fn buckets(&self) -> Buckets {
        let mut sum = Buckets::default();
        self.lanes().for_each(|lane| sum.merge(&lane.buckets()));
        sum
    }

    /// Bytes of the objects in some of the buckets, nearly.
    pub(crate) fn bytes_in(&self, buckets: &BucketSet) -> u64 {
        self.bytes * u64::from(buckets.len()) / 256
    }
}

// === impl Feeds ===

impl Feeds {
    pub(crate) fn new(frame_bytes: usize, group_bytes: usize) -> Self {
        Self { feeds: Mutex::default(), large: Mutex::default(), frame_bytes, group_bytes }
    }

    pub(crate) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// How many feeds somebody reads, and the bytes of large groups that are being sent.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let feeds = self.feeds.lock().values().filter(|feed| feed.strong_count() > 0).count();
        let large: Vec<_> = self.large.lock().iter().filter_map(Weak::upgrade).collect();
        let bytes = large.iter().filter(|group| !group.is_revoked()).map(|group| group.bytes()).sum();
        (feeds, bytes)
    }

    /// The feed of that key, shared with all who read it.
    pub(crate) fn open(&self, key: FeedKey) -> Arc<Feed> {
        let mut feeds = self.feeds.lock();
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade) {
            return feed;
        }
        if feeds.len() >= 64 && feeds.len().is_power_of_two() {
            feeds.retain(|_, feed| feed.strong_count() > 0);
        }
        let feed = Arc::new(Feed { key: key.clone(), frame_bytes: self.frame_bytes, cache: Mutex::default() });
        feeds.insert(key, Arc::downgrade(&feed));
        feed
    }

    fn is_large(&self, group: &Group) -> bool {
        group.bytes() > self.group_bytes / LARGE_PART
    }

    /// Makes room for the groups that a reader is about to be sent, as far as they count: the oldest of the others are
    /// taken from readers that have stalled. Whoever reads on keeps its group, or two readers could take theirs from
    /// one another for ever.
    pub(crate) fn admit<'a>(&self, groups: impl Iterator<Item = &'a Arc<Group>>) {
        let new: Vec<_> = groups.filter(|group| group.bytes() > self.group_bytes / COUNTED_PART).collect();
        // Most readers of a group come after the first one, for which room was made.
        let counted = new.iter().filter(|group| group.count()).count();
        if counted == new.len() {
            return;
        }
        let is_new = |group: &Arc<Group>| new.iter().any(|other| Arc::ptr_eq(group, other));
        let mut large = self.large.lock();
        let mut others: Vec<_> = large.iter().filter_map(Weak::upgrade).collect();
        others.retain(|group| !group.is_revoked() && !is_new(group));
        let bytes = |group: &Arc<Group>| group.bytes();
        let mut total = others.iter().map(bytes).sum::<usize>() + new.iter().map(|group| bytes(group)).sum::<usize>();
        others.retain(|oldest| {
            let stays = total <= self.group_bytes || oldest.take_moving();
            if !stays {
                total -= oldest.bytes();
                oldest.revoke();
            }
            stays
        });
        *large = others.iter().chain(new).map(Arc::downgrade).collect();
    }
}
