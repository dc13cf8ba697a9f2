use std::{
    collections::BTreeSet,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use nimbus_core::{ObjectKey, Revision};
use nimbus_store::{Op, Precondition, Record, Step};

use super::*;
use crate::{
    fixtures::{commit, key, kind, publisher, put, store},
    source::Change,
    target::{OpenSync as _, Target as _},
};

/// What the watch has to say now.
fn poll(watch: &mut StoreWatch) -> Option<Event> {
    match std::pin::pin!(watch).poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => Some(event.unwrap().unwrap()),
        Poll::Pending => None,
    }
}

fn watch(store: &Store, from: Option<Position>) -> StoreWatch {
    StoreWatch::new(store.bus().store().clone(), &kind(), from)
}

/// How many objects a list has, and where it was taken.
fn list(watch: &mut StoreWatch) -> (usize, Position) {
    let mut count = 0;
    loop {
        match poll(watch) {
            Some(Event::Listing(records)) => {
                assert!(records.len() <= 1024);
                count += records.len();
            }
            Some(Event::Listed(position)) => return (count, position),
            other => panic!("expected a list, got {other:?}"),
        }
    }
}

#[track_caller]
fn changes(watch: &mut StoreWatch) -> (Vec<String>, Position) {
    let Some(Event::Changes(changes, position)) = poll(watch) else { panic!("expected changes") };
    let name = |change: &Change| match change {
        Change::Put(record) => format!("+{}", record.key().name()),
        Change::Removed(key, _) => format!("-{}", key.name()),
    };
    (changes.iter().map(name).collect(), position)
}

fn delete(name: &str) -> Op {
    Op::Delete(key(name))
}

#[test]
fn a_watch_lists_in_parts_and_then_tells_what_accumulated() {
    let store = store(1, 100);
    let keys: Vec<ObjectKey> = (0..2500).map(|at| key(&format!("n{at}"))).collect();
    commit(&store, keys.iter().map(|key| put(key, b"1")));
    let mut watch = watch(&store, None);
    assert!(matches!(poll(&mut watch), Some(Event::Listing(_))));
    // Written while the list is under way: it belongs to the changes.
    commit(&store, [put(&key("late"), b"1")]);
    let (rest, position) = list(&mut watch);
    assert_eq!((rest, position.revision), (2500 - 1024, Revision(1)));
    commit(&store, [put(&key("n0"), b"2"), delete("n1")]);
    commit(&store, [put(&key("n0"), b"3")]);
    let (told, position) = changes(&mut watch);
    assert_eq!(told, ["+late", "-n1", "+n0"]);
    assert_eq!(position.revision, Revision(4));
    assert!(poll(&mut watch).is_none());
}

#[test]
fn a_watch_goes_on_from_a_position_that_is_still_known() {
    let store = store(1, 1);
    commit(&store, [put(&key("a"), b"1"), put(&key("b"), b"1")]);
    let (_, position) = list(&mut watch(&store, None));
    commit(&store, [delete("a")]);
    assert_eq!(changes(&mut watch(&store, Some(position))).0, ["-a"]);
    commit(&store, [delete("b")]);
    assert_eq!(list(&mut watch(&store, Some(position))).0, 0, "the end of a is forgotten");
    let other = Position { epoch: Epoch(2), ..position };
    list(&mut watch(&store, Some(other)));
    let future = Position { revision: Revision(99), ..position };
    list(&mut watch(&store, Some(future)));
}

#[test]
fn a_watch_that_fell_behind_the_horizon_lists_again() {
    let store = store(1, 1);
    commit(&store, [put(&key("a"), b"1"), put(&key("b"), b"1"), put(&key("c"), b"1")]);
    let mut watch = watch(&store, None);
    assert_eq!(list(&mut watch).0, 3);
    commit(&store, [delete("a")]);
    commit(&store, [delete("b")]);
    assert_eq!(list(&mut watch).0, 1);
    assert!(poll(&mut watch).is_none());
}

#[tokio::test]
async fn a_refused_commit_says_what_to_do_about_it() {
    let store = store(1, 1);
    commit(&store, [put(&key("a"), b"1")]);
    let precondition = Precondition { absent: true, ..Precondition::default() };
    let steps = vec![Step { op: put(&key("a"), b"2"), precondition, take_over: false }];
    let txn = Txn { publisher: publisher(), fence: 0, leases: Vec::new(), steps };
    assert!(matches!(Source::commit(&store, txn).await, Err(CommitError::Conflict { .. })));
}

#[tokio::test]
async fn a_sync_sweeps_at_its_end_and_not_when_it_is_dropped() {
    let store = store(1, 100);
    let kinds = BTreeSet::from([kind()]);
    commit(&store, [put(&key("a"), b"1"), put(&key("b"), b"1"), put(&key("c"), b"1")]);
    let published = store.published(&publisher(), &kinds).await.unwrap();
    assert_eq!(published.len(), 3);
    let keys = |records: &[Arc<Record>]| records.iter().map(|record| record.key().clone()).collect();

    let mut dropped = store.begin_sync(publisher(), 0, kinds.clone(), Vec::new()).await.unwrap();
    dropped.keep(keys(&published[..1])).await.unwrap();
    drop(dropped);
    assert_eq!(store.snapshot().list(&kind()).count(), 3);

    let mut sync = store.begin_sync(publisher(), 0, kinds.clone(), Vec::new()).await.unwrap();
    commit(&store, [put(&key("a"), b"2")]);
    // What is kept was read before somebody wrote it again: what was written stays.
    sync.keep(keys(&published[..2])).await.unwrap();
    let ended = sync.end().await.unwrap();
    assert_eq!((ended.epoch, ended.revision, ended.summary.deleted), (Some(Epoch(1)), Revision(3), 1));
    let left: Vec<_> = store
        .published(&publisher(), &kinds)
        .await
        .unwrap()
        .iter()
        .map(|record| record.spec())
        .collect();
    assert_eq!(left, [&b"2"[..], b"1"]);
}
