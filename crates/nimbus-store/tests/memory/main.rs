//! What an object takes that is only kept: bytes and allocations, as they are asked of the allocator.
//!
//! Allocations of one thread are counted, so that the figures are the same in every run.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

use std::{collections::BTreeSet, sync::Arc};

use allocation_counter::measure;
use nimbus_core::{AgentId, Annotations, Audience, Epoch, Kind, Labels, ObjectKey, Owner, PublisherId, Uid};
use nimbus_store::{Collection, Config, Draft, Op, Piece, Scope, Signal, StatusDraft, Txn, Viewer};
use prost::Message as _;

/// Enough that what a collection takes by itself does not count.
const OBJECTS: u64 = 20_000;

/// Bytes of a spec.
const SPEC: usize = 512;

/// As many as a publisher that syncs puts into a transaction.
const AT_ONCE: u64 = 256;

fn kind() -> Kind {
    Kind::new("bench.v1.Item").unwrap()
}

fn publisher() -> PublisherId {
    PublisherId::new("publisher").unwrap()
}

fn key(number: u64) -> ObjectKey {
    // As it comes from the wire: nothing is shared with other keys.
    ObjectKey::new(kind(), "", &format!("item-{number:06}")).unwrap()
}

fn draft(number: u64, version: u8, audience: &Audience) -> Draft {
    let any = prost_types::Any { type_url: format!("type.googleapis.com/{}", kind()), value: vec![version; SPEC] };
    Draft {
        key: key(number),
        uid: None,
        generation: None,
        labels: Labels::new(&[].into()).unwrap(),
        refs: [].into_iter().collect(),
        owner: None,
        annotations: Annotations::default(),
        audience: audience.clone(),
        spec: any.encode_to_vec().into(),
    }
}

fn commit(store: &Collection, ops: impl Iterator<Item = Op>) {
    let txn = Txn { publisher: publisher(), fence: 0, leases: Vec::new(), steps: ops.map(Into::into).collect() };
    store.commit(&txn).unwrap();
}

fn fill(store: &Collection, version: u8, numbers: impl Iterator<Item = u64>, audience: impl Fn(u64) -> Audience) {
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let some = numbers.by_ref().take(AT_ONCE as usize);
        commit(store, some.map(|number| Op::Upsert(draft(number, version, &audience(number)))));
    }
}

fn everyone(_: u64) -> Audience {
    Audience::Everyone
}

fn store() -> Collection {
    Collection::new(Config::new(Epoch(1)))
}

/// Some order that has nothing to do with names.
fn shuffled() -> impl Iterator<Item = u64> {
    // It has no factor in common with the number of objects.
    (0..OBJECTS).map(|at| at * 7_919 % OBJECTS)
}

/// What `work` leaves behind, in bytes and hundredths of allocations for an object.
fn left(work: impl FnOnce()) -> (i64, i64) {
    let info = measure(work);
    let objects = i64::try_from(OBJECTS).unwrap();
    (info.bytes_current / objects, info.count_current * 100 / objects)
}

#[track_caller]
fn at_most((bytes, allocations): (i64, i64), max_bytes: i64, max_allocations: i64) {
    assert!(
        bytes <= max_bytes && allocations <= max_allocations,
        "an object takes {bytes} bytes in {allocations} / 100 allocations: at most {max_bytes} in {max_allocations}"
    );
}

/// Of a name of 11 bytes and a spec of 512: 104 for the record, with the two counts of its pointer; 547 for what it has of
/// its own, which are 29 for its names and its uid, 6 for lengths and the generation, and the message; 52 for its places in three
/// full trees. Everything else is shared. A bus may take 768 in all, and an allocator needs 8 and some rest for each piece.
const OBJECT: i64 = 710;

/// Two pieces, and parts of the nodes of three trees.
const PIECES: i64 = 230;

#[test]
fn an_object_is_two_pieces_and_its_places() {
    let store = store();
    at_most(left(|| fill(&store, 1, 0..OBJECTS, everyone)), OBJECT, PIECES);
}

#[test]
fn labels_and_an_owner_take_no_piece_of_their_own() {
    let store = store();
    let labels = Labels::new(&[("zone".to_owned(), "a".to_owned())].into()).unwrap();
    let parent = ObjectKey::new(Kind::new("bench.v1.Parent").unwrap(), "", "item").unwrap();
    let owner = Owner::new(parent, Uid::new("6f1e0a52-9c1d-4b7e-8a33-0123456789ab").unwrap());
    let derived =
        |number| Draft { labels: labels.clone(), owner: Some(owner.clone()), ..draft(number, 1, &Audience::Everyone) };
    let fill = || {
        for first in (0..OBJECTS).step_by(AT_ONCE as usize) {
            let numbers = first..OBJECTS.min(first + AT_ONCE);
            commit(&store, numbers.map(|number| Op::Upsert(derived(number))));
        }
    };
    // What is there for that is a field of 11 bytes, and 19 for the owner: the number that its uid is, and 3 for what is
    // known of it from the object. Encoded, it would be 63.
    at_most(left(fill), OBJECT + 30, PIECES);
}

#[test]
fn objects_that_come_in_any_order_have_nodes_that_are_less_full() {
    let store = store();
    // Of the 52 for places, 27 are for names, which are less dense now.
    at_most(left(|| fill(&store, 1, shuffled(), everyone)), OBJECT + 10, PIECES + 5);
}

#[test]
fn objects_that_change_for_ever_do_not_grow() {
    let store = store();
    let grown = left(|| {
        fill(&store, 1, 0..OBJECTS, everyone);
        for version in 2..4 {
            fill(&store, version, shuffled(), everyone);
            let status = |number| {
                let status = prost_types::Any { type_url: "t".to_owned(), value: vec![version] };
                let status = status.encode_to_vec().into();
                Op::Status(StatusDraft { key: key(number), status, observed: nimbus_core::Generation(1) })
            };
            commit(&store, (0..AT_ONCE).map(status));
        }
    });
    // What changes leaves room behind in the two trees that are in the order of changes.
    at_most(grown, OBJECT + 20, PIECES + 10);
}

#[test]
fn objects_that_end_leave_what_is_remembered_of_the_last_ones() {
    let mut config = Config::new(Epoch(1));
    config.limits.tombstones = 100;
    let store = Collection::new(config);
    let left = left(|| {
        fill(&store, 1, 0..OBJECTS, everyone);
        for first in (0..OBJECTS).step_by(AT_ONCE as usize) {
            commit(&store, (first..OBJECTS.min(first + AT_ONCE)).map(|number| Op::Delete(key(number))));
        }
        assert_eq!(store.state().objects(), 0);
    });
    // A hundredth of a percent of what was there would be 1.
    at_most(left, 5, 5);
}

#[test]
fn whoever_reads_leaves_nothing_behind() {
    let store = store();
    fill(&store, 1, 0..OBJECTS, everyone);
    let read = |viewer| {
        let scope = Scope { kinds: Some(Arc::new([kind()].into())), filter: None, viewer };
        let mut cursor = store.cursor(scope, Signal::default());
        cursor.begin_snapshot(None, Vec::new());
        let mut bytes = 0;
        while let Some(piece) = cursor.next() {
            if let Piece::Frame(frame) = piece {
                bytes += frame.len();
            }
        }
        assert!(bytes > OBJECTS as usize * SPEC, "{bytes} bytes");
    };
    let left = left(|| {
        read(Viewer::Observer);
        read(Viewer::Agent { id: AgentId::new("a").unwrap(), labels: Labels::default() });
        // A publisher that says the same again.
        let sync = store.begin_sync(&publisher(), 0, BTreeSet::from([kind()])).unwrap();
        let drafts = |first| (first..OBJECTS.min(first + AT_ONCE)).map(|number| draft(number, 1, &Audience::Everyone));
        for first in (0..OBJECTS).step_by(AT_ONCE as usize) {
            store.sync_items(&sync, drafts(first).collect()).unwrap();
        }
        let (_, summary) = store.end_sync(&sync).unwrap();
        assert_eq!((summary.unchanged, summary.deleted), (OBJECTS, 0));
    });
    at_most(left, 5, 5);
}

#[test]
fn what_a_sync_has_named_is_a_few_bytes_until_it_ends() {
    let store = store();
    let sync = store.begin_sync(&publisher(), 0, BTreeSet::from([kind()])).unwrap();
    let drafts = |first| (first..OBJECTS.min(first + AT_ONCE)).map(|number| draft(number, 1, &Audience::Everyone));
    let during = left(|| {
        for first in (0..OBJECTS).step_by(AT_ONCE as usize) {
            store.sync_items(&sync, drafts(first).collect()).unwrap();
        }
    });
    // Two hashes, in a table that is between 44 and 88 percent full. With the names, it was 160 more, and holes in the
    // heap afterwards.
    at_most(during, OBJECT + 40, PIECES);
    let (_, summary) = store.end_sync(&sync).unwrap();
    assert_eq!((summary.created, summary.deleted), (OBJECTS, 0));
}

#[test]
fn an_object_for_one_agent_is_kept_once() {
    let store = store();
    let own = |number: u64| {
        let agent = AgentId::new(&format!("agent-{:05}", number / 10)).unwrap();
        Audience::Agents(Arc::new(BTreeSet::from([agent])))
    };
    // Ten for each of many agents: a lane and a tree of its own for each of these, and an audience for each object, which is
    // kept apart from what more objects have.
    at_most(left(|| fill(&store, 1, 0..OBJECTS, own)), 1_400, 1_400);
}
