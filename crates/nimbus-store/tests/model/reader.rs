//! A naive client: a loop over frames and a map. It compares what it holds with the model wherever it may.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    task::Waker,
};

use bytes::Bytes;
use nimbus_core::{BucketSet, Buckets, Digest, Kind, ObjectKey, PublisherId, Revision, ScopeHash};
use nimbus_store::{Collection, Cursor, Mark, Origin, Piece, Signal};
use nimbus_wire::v1::{self, event::Change};
use parking_lot::Mutex;
use prost::Message as _;

use crate::model::{Model, Obj, Scope};

/// How often something happened in all cases, so that a run can say that it was worth it.
static COVERAGE: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Takes note that something happened.
pub(crate) fn hit(what: &'static str) {
    *COVERAGE.lock().entry(what).or_default() += 1;
}

/// All that happened.
pub(crate) fn coverage() -> BTreeMap<&'static str, u64> {
    COVERAGE.lock().clone()
}

/// What a reader may look at in order to check itself.
pub(crate) struct Truth<'a> {
    pub(crate) model: &'a Model,
    pub(crate) epoch: u64,
    pub(crate) frame_bytes: usize,
    pub(crate) leaves: &'a mut Leaves,
}

/// Digests that were seen: equal contents have equal digests, in every epoch, and different contents different ones.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    by_content: HashMap<Vec<u8>, Digest>,
    by_digest: HashMap<Digest, Vec<u8>>,
    buckets: BTreeMap<ObjectKey, u8>,
}

/// An object as the reader holds it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    revision: u64,
    /// Taken over by digest: the content is right, the revision may be an older one.
    loose: bool,
    object: v1::Object,
    digest: Digest,
}

/// How a reader comes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    pub(crate) forget_position: bool,
    pub(crate) root: bool,
    pub(crate) buckets: bool,
    /// Begins a snapshot although the bus is being refilled.
    pub(crate) eager: bool,
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) scope: Scope,
    pub(crate) wanted: Scope,
    pub(crate) held: BTreeMap<ObjectKey, Held>,
    /// Epoch, revision and scope at which it held its feed exactly.
    position: Option<(u64, u64, ScopeHash)>,
    epoch: u64,
    hash: ScopeHash,
    link: Option<Link>,
}

/// One session.
#[derive(Debug)]
struct Link {
    cursor: Cursor,
    signal: Signal,
    how: How,
    origins: Vec<Origin>,
    /// Nothing was sent yet: publishers are still refilling the bus.
    waiting: bool,
    /// The last look found nothing.
    idle: bool,
    /// The part of a group that has arrived.
    staged: Vec<Arrived>,
    /// The group leads to another scope.
    switching: bool,
    snapshot: Option<Snapshot>,
    /// A snapshot was broken off: it must begin again.
    must_begin: bool,
    /// Removals of this session and scope.
    ended: BTreeMap<ObjectKey, u64>,
}

#[derive(Debug)]
struct Snapshot {
    buckets: BucketSet,
    seen: BTreeSet<ObjectKey>,
    /// Objects that are still to come in its first pass.
    left: u64,
    /// Nothing was missing at some time since it began; a kind that is announced afterwards does not hold it up.
    settled: bool,
    /// Referents that were not seen before something that refers to them.
    missed: BTreeSet<ObjectKey>,
}

/// An event, taken apart.
#[derive(Debug)]
struct Arrived {
    key: ObjectKey,
    revision: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Put(Box<v1::Object>, Digest),
    Removal,
}

fn key_of(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new(kind).unwrap(), namespace, name).unwrap()
}

fn strong_refs(object: &v1::Object) -> impl Iterator<Item = ObjectKey> {
    object
        .refs
        .iter()
        .filter(|to| !to.weak)
        .map(|to| key_of(&to.kind, &to.namespace, &to.name))
}

/// Takes the five bytes of gRPC off a frame and decodes it.
pub(crate) fn decode(bytes: &Bytes) -> v1::Batch {
    assert_eq!(bytes[0], 0, "not compressed");
    let len = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
    assert_eq!(len, bytes.len() - 5, "the prefix says the length");
    match v1::Frame::decode(bytes.slice(5..)).unwrap().frame {
        Some(v1::frame::Frame::Batch(batch)) => batch,
        other => panic!("expected a batch, found {other:?}"),
    }
}

// === impl Leaves ===

impl Leaves {
    fn check(&mut self, key: &ObjectKey, object: &v1::Object, digest: Digest) {
        let content = v1::Object { revision: 0, ..object.clone() }.encode_to_vec();
        let known = *self.by_content.entry(content.clone()).or_insert(digest);
        assert_eq!(known, digest, "{key}: equal objects have equal digests");
        let known = self.by_digest.entry(digest).or_insert_with(|| content.clone());
        assert_eq!(*known, content, "{key}: different objects have different digests");
        let bucket = *self.buckets.entry(key.clone()).or_insert(digest.bucket());
        assert_eq!(bucket, digest.bucket(), "{key}: the bucket depends on the key only");
    }
}

// === impl Reader ===

impl Reader {
    pub(crate) fn new(scope: Scope) -> Self {
        let (held, wanted) = (BTreeMap::new(), scope.clone());
        Self { scope, wanted, held, position: None, epoch: 0, hash: ScopeHash(0), link: None }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// The connection breaks: what was not complete is forgotten.
    pub(crate) fn disconnect(&mut self) {
        self.link = None;
    }

    pub(crate) fn root(&self) -> Digest {
        self.held.values().map(|held| held.digest).collect()
    }

    fn buckets(&self) -> Buckets {
        let mut buckets = Buckets::default();
        self.held.values().for_each(|held| buckets.toggle(held.digest));
        buckets
    }

    pub(crate) fn connect(&mut self, store: &Collection, how: How, truth: &mut Truth<'_>) {
        self.scope = self.wanted.clone();
        let scope = self.scope.to_store();
        let (hash, signal) = (scope.hash(), Signal::default());
        let cursor = store.cursor(scope, signal.clone());
        self.hash = hash;
        let origins: BTreeSet<_> = (self.held.iter())
            .map(|(key, held)| Origin {
                manager: PublisherId::new(&held.object.manager).unwrap(),
                kind: key.kind().clone(),
            })
            .collect();
        self.link = Some(Link {
            cursor,
            signal,
            how,
            origins: origins.into_iter().collect(),
            waiting: true,
            idle: false,
            staged: Vec::new(),
            switching: false,
            snapshot: None,
            must_begin: false,
            ended: BTreeMap::new(),
        });
        if self.epoch != truth.epoch {
            self.epoch = truth.epoch;
            self.held.values_mut().for_each(|held| (held.revision, held.loose) = (0, true));
        }
        let root = how.root.then(|| self.root());
        let link = self.link.as_mut().unwrap();
        if let Some((epoch, revision, of)) = self.position
            && (epoch, of) == (truth.epoch, hash)
            && !how.forget_position
        {
            if link.cursor.resume(Revision(revision), root) {
                link.waiting = false;
                link.origins.clear();
                hit("resume");
                return;
            }
            hit("resume refused");
            // The view of a filter may be younger than the position.
            let filter = &self.scope.filter;
            let by_names = filter.names.is_empty() && filter.namespaces.is_empty();
            let plain = by_names && filter.selector.is_empty() && filter.first.is_none();
            assert!(store.state().horizon().0 > revision || !plain, "the tombstones reach back to {revision}");
        }
        self.position = None;
        self.decide(store, truth);
    }

    /// Compares digests, then begins a snapshot or waits.
    fn decide(&mut self, store: &Collection, truth: &mut Truth<'_>) {
        let (root, buckets) = (self.root(), self.buckets());
        let link = self.link.as_mut().unwrap();
        let settled = link.cursor.is_settled(&link.origins);
        assert_eq!(settled, truth.model.is_settled(&self.scope, &link.origins), "settled");
        if link.how.root && link.cursor.is_equal(root) {
            link.waiting = false;
            hit(if self.held.is_empty() { "equal, empty" } else { "equal" });
            self.held.values_mut().for_each(|held| held.loose = true);
            self.arrive(store.state().head().0, truth);
            return;
        }
        if settled || link.how.eager {
            link.waiting = false;
            let offer = link.how.buckets.then_some(&buckets);
            let piece = link.cursor.begin_snapshot(offer, link.origins.clone());
            hit(if settled { "snapshot" } else { "snapshot of a bus that is being refilled" });
            self.take(piece, truth);
        } else {
            hit("wait");
        }
    }

    /// Asks for another scope.
    pub(crate) fn rescope(&mut self, scope: Scope, store: &Collection, truth: &mut Truth<'_>) {
        self.wanted = scope;
        let Some(link) = &mut self.link else { return };
        if link.waiting {
            let how = link.how;
            self.connect(store, how, truth);
        } else {
            link.cursor.rescope(self.wanted.to_store());
            link.idle = false;
        }
    }

    /// Takes one piece; `false` if there is none.
    pub(crate) fn poll(&mut self, store: &Collection, truth: &mut Truth<'_>) -> bool {
        let Some(link) = &mut self.link else { return false };
        if link.waiting {
            self.decide(store, truth);
            return self.link.as_ref().is_some_and(|link| !link.waiting);
        }
        if let Some(snapshot) = &mut link.snapshot {
            snapshot.settled |= truth.model.is_settled(&self.scope, &link.origins);
        }
        let raised = link.signal.poll(Waker::noop());
        let piece = link.cursor.next();
        assert!(raised || !link.idle || piece.is_none(), "there is something new, but nobody was woken: {piece:?}");
        let Some(piece) = piece else {
            link.idle = true;
            self.rest(truth);
            return false;
        };
        link.idle = false;
        self.take(piece, truth);
        true
    }

    /// Asks for a bookmark at any time: if there is one, it must be right.
    pub(crate) fn ask_for_bookmark(&mut self, truth: &mut Truth<'_>) {
        let Some(link) = self.link.as_mut().filter(|link| !link.waiting) else { return };
        if let Some(mark) = link.cursor.bookmark() {
            assert!(link.staged.is_empty() && link.snapshot.is_none(), "no bookmark within a group");
            self.check_mark(mark, truth);
        }
    }

    /// The reader has everything: it holds what there is now.
    fn rest(&mut self, truth: &mut Truth<'_>) {
        let link = self.link.as_mut().unwrap();
        assert!(link.staged.is_empty() && !link.switching && !link.must_begin, "nothing more, but a group is open");
        let mark = link.cursor.bookmark();
        if link.snapshot.is_some() {
            assert!(mark.is_none(), "no bookmark within a snapshot");
            assert!(!truth.model.is_settled(&self.scope, &link.origins), "the snapshot could end");
            return;
        }
        let mark = mark.expect("a reader that has everything has a bookmark");
        assert_eq!(mark.revision.0, truth.model.head(), "the bookmark is at the head");
        self.check_mark(mark, truth);
    }

    fn take(&mut self, piece: Piece, truth: &mut Truth<'_>) {
        let link = self.link.as_mut().unwrap();
        if link.must_begin {
            let next = matches!(piece, Piece::SnapshotBegin { .. } | Piece::ScopeChanged(_));
            assert!(next, "a snapshot that was broken off begins again, but there is {piece:?}");
        }
        match piece {
            Piece::SnapshotBegin { buckets, objects, .. } => {
                assert!(link.staged.is_empty(), "a snapshot begins within a group");
                if link.must_begin {
                    hit("snapshot, again");
                } else if link.snapshot.is_some() || self.position.is_some() {
                    hit("snapshot within a session");
                }
                if buckets != BucketSet::ALL {
                    hit("snapshot of some buckets");
                }
                let (seen, missed) = (BTreeSet::new(), BTreeSet::new());
                let settled = truth.model.is_settled(&self.scope, &link.origins);
                link.snapshot = Some(Snapshot { buckets, seen, left: objects, settled, missed });
                (link.must_begin, link.switching) = (false, false);
                self.position = None;
                if buckets != BucketSet::ALL {
                    self.held.values_mut().for_each(|held| held.loose = true);
                }
            }
            Piece::Frame(bytes) => self.take_frame(&bytes, truth),
            Piece::SnapshotEnd(mark) => {
                let snapshot = link.snapshot.take().expect("a snapshot is open");
                assert!(snapshot.settled, "a snapshot ends, but something is missing");
                assert_eq!(snapshot.left, 0, "objects that SnapshotBegin announced");
                let before = self.held.len();
                self.held.retain(|key, held| {
                    !snapshot.buckets.contains(held.digest.bucket()) || snapshot.seen.contains(key)
                });
                if self.held.len() < before {
                    hit("sweep");
                }
                self.check_mark(mark, truth);
            }
            Piece::Restarted => {
                hit(match (&link.snapshot, link.switching) {
                    (Some(_), _) => "snapshot restarted",
                    (None, true) => "change of scope restarted",
                    (None, false) => "group restarted",
                });
                link.must_begin = link.snapshot.is_some();
                link.staged.clear();
                link.switching = false;
            }
            Piece::ScopeChanged(hash) => {
                assert_eq!(hash, self.wanted.to_store().hash(), "the scope that was asked for");
                assert!(link.staged.is_empty(), "a group is broken off by a change of scope");
                (self.scope, self.hash) = (self.wanted.clone(), hash);
                self.position = None;
                link.must_begin = link.snapshot.take().is_some();
                link.switching = true;
                link.ended.clear();
            }
            other => panic!("unknown piece {other:?}"),
        }
    }

    fn take_frame(&mut self, bytes: &Bytes, truth: &mut Truth<'_>) {
        let batch = decode(bytes);
        assert!(bytes.len() <= truth.frame_bytes || batch.events.len() <= 1, "a frame of {} bytes", bytes.len());
        // Before the first write, even a change of scope leads to revision 0.
        let commits = batch.revision != 0 || (batch.events.is_empty() && self.link.as_ref().unwrap().switching);
        assert!(!batch.events.is_empty() || commits, "an empty batch");
        let changes: Vec<_> = batch.events.into_iter().map(|event| self.check_event(event, truth)).collect();
        let link = self.link.as_mut().unwrap();
        if link.snapshot.is_some() {
            assert_eq!(batch.revision, 0, "nothing is complete within a snapshot");
            changes.into_iter().for_each(|change| self.apply_in_snapshot(change));
            return;
        }
        if !link.staged.is_empty() {
            hit("group of many frames");
        }
        link.staged.extend(changes);
        if commits {
            self.commit(batch.revision, truth);
        }
    }

    /// Checks an event by itself: it is of this scope, and what the model had at its revision.
    fn check_event(&self, event: v1::Event, truth: &mut Truth<'_>) -> Arrived {
        let link = self.link.as_ref().unwrap();
        match event.change.unwrap() {
            Change::Put(object) => {
                let (key, revision) = (key_of(&object.kind, &object.namespace, &object.name), object.revision);
                let digest = Digest::from_slice(&event.digest).expect("a put has a digest");
                truth.leaves.check(&key, &object, digest);
                let model = truth.model.at(revision).get(&key);
                let model = model.unwrap_or_else(|| panic!("{key} did not exist at {revision}"));
                assert_eq!(model.revision, revision, "{key} was not written at this revision");
                assert!(self.scope.sees(model), "{key} is not for this reader");
                let content = v1::Object { revision: 0, ..object.clone() };
                assert_eq!(content, *self.wire(model), "{key} at {revision}");
                Arrived { key, revision, body: Body::Put(Box::new(object), digest) }
            }
            Change::Delete(removal) => {
                assert!(event.digest.is_empty(), "a removal has no digest");
                let (key, revision) = (key_of(&removal.kind, &removal.namespace, &removal.name), removal.revision);
                let exists = truth.model.at(revision).contains_key(&key);
                assert_eq!(removal.out_of_scope, exists, "{key} exists at {revision}");
                let before = truth.model.at(revision - 1).get(&key);
                if !link.switching {
                    let before = before.unwrap_or_else(|| panic!("{key} is removed, but there was none"));
                    assert!(self.scope.sees(before), "{key} is removed, but it was not for this reader");
                    assert_eq!(removal.uid, before.uid.as_str(), "the uid of {key}");
                }
                Arrived { key, revision, body: Body::Removal }
            }
        }
    }

    fn wire<'a>(&self, object: &'a Obj) -> &'a v1::Object {
        if self.scope.is_observer() { &object.full } else { &object.plain }
    }

    fn apply_in_snapshot(&mut self, change: Arrived) {
        let link = self.link.as_mut().unwrap();
        let snapshot = link.snapshot.as_mut().unwrap();
        let Arrived { key, revision, body } = change;
        let first_pass = snapshot.left > 0;
        if let Some(held) = self.held.get(&key) {
            let seen = snapshot.seen.contains(&key);
            assert!(revision > held.revision || (revision == held.revision && !seen), "{key} goes back to {revision}");
        }
        match body {
            Body::Put(object, digest) => {
                assert!(snapshot.buckets.contains(digest.bucket()) || !first_pass, "{key} is not in these buckets");
                if first_pass {
                    snapshot.left -= 1;
                    assert!(!snapshot.missed.contains(&key), "{key} comes after what refers to it");
                    snapshot.missed.extend(strong_refs(&object).filter(|to| !snapshot.seen.contains(to)));
                    assert!(!snapshot.seen.contains(&key), "{key} comes twice");
                }
                snapshot.seen.insert(key.clone());
                self.held.insert(key, Held { revision, loose: false, object: *object, digest });
            }
            Body::Removal => {
                assert!(!first_pass, "{key} is removed within a snapshot");
                snapshot.seen.remove(&key);
                self.held.remove(&key);
            }
        }
    }

    /// A group is complete: it is applied, and the reader holds what the model has at this revision.
    fn commit(&mut self, revision: u64, truth: &mut Truth<'_>) {
        let link = self.link.as_mut().unwrap();
        let (staged, switching) = (std::mem::take(&mut link.staged), std::mem::take(&mut link.switching));
        if switching {
            hit("change of scope");
        }
        if staged.iter().any(|change| matches!(change.body, Body::Removal)) {
            hit("group with removals");
        }
        check_order(&staged, &self.held, switching, truth.model);
        for Arrived { key, revision: at, body } in staged {
            let held = self.held.get(&key).map_or(0, |held| held.revision);
            let ended = link.ended.get(&key).copied().unwrap_or_default();
            let removed_by_switch = switching && matches!(body, Body::Removal);
            assert!(at > held || (removed_by_switch && at == held), "{key} goes from {held} to {at}");
            assert!(at > ended, "{key} was removed at {ended}, now there is {at}");
            assert!(at <= revision, "{key} at {at} in a group that leads to {revision}");
            if let (Some((_, before, _)), 0, Body::Removal) = (self.position, held, &body) {
                // An earlier life of the name may be what is removed, but there must have been one.
                let mut past = truth.model.history.iter().take_while(|(at, _)| *at <= before);
                let known = switching || past.any(|(_, state)| state.contains_key(&key));
                assert!(known, "{key} is removed at {at}, but the reader cannot have known it at {before}");
            }
            match body {
                Body::Put(object, digest) => {
                    self.held.insert(key, Held { revision: at, loose: false, object: *object, digest });
                }
                Body::Removal => {
                    if !switching {
                        link.ended.insert(key.clone(), at);
                    }
                    self.held.remove(&key);
                }
            }
        }
        if let Some((_, before, _)) = self.position {
            assert!(revision > before, "a group leads from {before} to {revision}");
        }
        self.arrive(revision, truth);
    }

    fn check_mark(&mut self, mark: Mark, truth: &mut Truth<'_>) {
        assert_eq!(mark.objects, self.held.len() as u64, "objects held at {}", mark.revision);
        assert_eq!(mark.digest, self.root(), "the digest of what is held at {}", mark.revision);
        self.arrive(mark.revision.0, truth);
    }

    /// The reader is at a revision: it holds exactly what the model says.
    fn arrive(&mut self, revision: u64, truth: &mut Truth<'_>) {
        self.position = Some((truth.epoch, revision, self.hash));
        // What it holds is of this epoch now: nobody has to publish it again first.
        self.link.as_mut().unwrap().origins.clear();
        let visible = truth.model.visible(&self.scope, revision);
        let (have, want): (Vec<_>, Vec<_>) = (self.held.keys().collect(), visible.keys().copied().collect());
        assert_eq!(have, want, "what is held at {revision}, and what should be");
        for (held, object) in self.held.values().zip(visible.values()) {
            let content = v1::Object { revision: 0, ..held.object.clone() };
            assert_eq!(content, *self.wire(object), "{} at {revision}", object.key);
            let named = matches!(object.audience, nimbus_core::Audience::Agents(_)) && !self.scope.is_observer();
            let lowest = match (held.loose, named) {
                (true, _) => 0,
                (false, true) => object.content_revision,
                (false, false) => object.revision,
            };
            let right = lowest <= held.revision && held.revision <= object.revision;
            assert!(right, "{}: held at {}, last changed at {}", object.key, held.revision, object.revision);
        }
    }
}

/// Puts come first, referents before referrers; then removals, referrers before referents. No name comes twice.
fn check_order(staged: &[Arrived], held: &BTreeMap<ObjectKey, Held>, switching: bool, model: &Model) {
    let mut places = BTreeMap::new();
    for (at, change) in staged.iter().enumerate() {
        assert!(places.insert(&change.key, at).is_none(), "{} comes twice in a group", change.key);
    }
    let is_put = |change: &Arrived| matches!(change.body, Body::Put(..));
    let puts = staged.iter().take_while(|change| is_put(change)).count();
    assert!(!staged[puts..].iter().any(is_put), "a put comes after a removal");
    for (at, change) in staged[..puts].iter().enumerate() {
        let Body::Put(object, _) = &change.body else { unreachable!() };
        for to in strong_refs(object) {
            if places.contains_key(&to) {
                hit("put of a referrer and its referent");
            }
            let before = places.get(&to).is_none_or(|place| *place < at || *place >= puts);
            assert!(before, "{to} comes after {}, which refers to it", change.key);
        }
    }
    let removals = &staged[puts..];
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for (at, change) in removals.iter().enumerate() {
        let last = if switching {
            model.at(change.revision).get(&change.key)
        } else {
            model.at(change.revision - 1).get(&change.key)
        };
        let unchanged =
            last.filter(|last| !switching || held.get(&change.key).is_some_and(|held| held.revision == last.revision));
        for to in unchanged.into_iter().flat_map(|last| last.needs()) {
            if let Some(place) = places.get(to).filter(|place| **place >= puts) {
                edges.push((at, *place - puts));
            }
        }
    }
    // References of objects that ended at different times may form a cycle; then there is no right order.
    let mut order: Vec<bool> = vec![false; removals.len()];
    loop {
        let free =
            (0..removals.len()).find(|at| !order[*at] && !edges.iter().any(|(from, to)| from == at && !order[*to]));
        match free {
            Some(at) => order[at] = true,
            None => break,
        }
    }
    if order.iter().all(|done| *done) {
        for (from, to) in edges {
            hit("removal of a referrer and its referent");
            assert!(from < to, "{} is removed before {}, which refers to it", removals[to].key, removals[from].key);
        }
    }
}
