use std::{collections::BTreeSet, sync::Arc, task::Waker};

use nimbus_core::{Annotations, Audience, Epoch, Kind, Labels, ObjectKey, PublisherId, Revision};

use crate::{Changed, Collection, Config, Draft, Limits, Op, Signal, Txn};

fn kind(name: &str) -> Kind {
    Kind::new(&format!("test.v1.{name}")).unwrap()
}

fn key(name: &str) -> ObjectKey {
    let (of, name) = name.split_once('/').unwrap_or(("Alpha", name));
    ObjectKey::new(kind(of), "", name).unwrap()
}

fn put(name: &str, spec: u8) -> Op {
    let (key, labels, annotations) = (key(name), Labels::default(), Annotations::default());
    let (audience, spec) = (Audience::Everyone, vec![18, 1, spec].into());
    Op::Upsert(Draft {
        key,
        uid: None,
        generation: None,
        labels,
        refs: Arc::default(),
        owner: None,
        annotations,
        audience,
        spec,
    })
}

fn delete(name: &str) -> Op {
    Op::Delete(key(name))
}

fn commit(store: &Collection, ops: impl IntoIterator<Item = Op>) -> Revision {
    let publisher = PublisherId::new("tester").unwrap();
    let steps = ops.into_iter().map(Into::into).collect();
    store.commit(&Txn { publisher, fence: 0, leases: Vec::new(), steps }).unwrap().revision
}

fn store(tombstones: usize) -> Collection {
    let limits = Limits { tombstones, ..Limits::default() };
    Collection::new(Config { limits, ..Config::new(Epoch(1)) })
}

fn changes(store: &Collection, after: u64) -> Vec<String> {
    let state = store.state();
    let all: Vec<_> = state.changes(&kind("Alpha"), Revision(after)).collect();
    assert!(all.is_sorted_by_key(Changed::slot), "{all:?}");
    let name = |changed: &Changed<'_>| match changed {
        Changed::Put(record) => format!("+{}", record.key().name()),
        Changed::Gone { key, .. } => format!("-{}", key.name()),
    };
    all.iter().map(name).collect()
}

#[test]
fn puts_and_ends_come_in_the_order_of_the_collection_and_conflated() {
    let store = store(100);
    assert!(changes(&store, 0).is_empty());
    commit(&store, [put("a", 1), put("b", 1), put("c", 1), put("Beta/x", 1)]);
    assert_eq!(changes(&store, 0), ["+a", "+b", "+c"]);
    commit(&store, [put("d", 1), delete("b"), put("a", 2)]);
    commit(&store, [put("c", 2)]);
    assert_eq!(changes(&store, 1), ["+d", "-b", "+a", "+c"]);
    assert_eq!(changes(&store, 2), ["+c"]);
    assert!(changes(&store, 3).is_empty());
}

#[test]
fn an_object_that_began_and_ended_unseen_is_not_mentioned() {
    let store = store(100);
    commit(&store, [put("a", 1)]);
    commit(&store, [put("b", 1)]);
    commit(&store, [delete("b")]);
    assert!(changes(&store, 1).is_empty());
    assert_eq!(changes(&store, 2), ["-b"]);
    assert_eq!(store.state().last_change_of(&kind("Alpha")), Revision(3));
    assert_eq!(store.state().last_change_of(&kind("Beta")), Revision::ZERO);
}

#[test]
fn a_state_reaches_back_to_the_tombstones_that_it_remembers() {
    let store = store(1);
    commit(&store, [put("a", 1), put("b", 1)]);
    commit(&store, [delete("a")]);
    assert!(store.state().reaches(Revision(1)));
    commit(&store, [delete("b")]);
    let state = store.state();
    assert!(!state.reaches(Revision(1)), "the end of a is forgotten");
    assert!(state.reaches(Revision(2)));
    assert!(!state.reaches(Revision(4)), "nobody knows the future");
}

#[test]
fn a_listener_hears_of_its_kinds_until_it_is_dropped() {
    let store = store(100);
    let signal = Signal::default();
    let raised = || signal.poll(Waker::noop());
    let listener = store.listen(BTreeSet::from([kind("Alpha")]), &signal);
    assert!(!raised());
    commit(&store, [put("Beta/x", 1)]);
    assert!(!raised(), "another kind");
    commit(&store, [put("a", 1)]);
    assert!(raised());
    commit(&store, [delete("a")]);
    assert!(raised());
    drop(listener);
    commit(&store, [put("a", 1)]);
    assert!(!raised());
}

#[test]
fn what_a_sync_keeps_is_not_swept() {
    let store = store(100);
    let publisher = PublisherId::new("tester").unwrap();
    commit(&store, [put("a", 1), put("b", 1)]);
    let sync = store.begin_sync(&publisher, 0, BTreeSet::from([kind("Alpha")])).unwrap();
    store.sync_keep(&sync, [key("a"), key("never-was")]).unwrap();
    assert!(store.sync_keep(&sync, [key("Beta/x")]).is_err(), "not covered");
    let (_, summary) = store.end_sync(&sync).unwrap();
    assert_eq!((summary.unchanged, summary.deleted), (1, 1));
    assert_eq!(changes(&store, 1), ["-b"]);
}
