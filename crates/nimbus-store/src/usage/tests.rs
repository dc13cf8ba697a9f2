use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use nimbus_core::{Annotations, Audience, Epoch, Kind, Labels, ObjectKey, PublisherId};
use parking_lot::Mutex;

use crate::{Collection, Config, DiskWatch, Draft, Op, Scope, Signal, Traffic, Txn, Usage, Viewer};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("test.v1.Alpha").unwrap(), "", name).unwrap()
}

fn put(name: &str, spec: u8) -> Op {
    Op::Upsert(Draft {
        key: key(name),
        uid: None,
        generation: None,
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: vec![18, 1, spec].into(),
    })
}

fn commit(store: &Collection, op: Op) {
    let publisher = PublisherId::new("tester").unwrap();
    store
        .commit(&Txn { publisher, fence: 0, leases: Vec::new(), steps: vec![op.into()] })
        .unwrap();
}

fn everything() -> Scope {
    Scope { kinds: None, filter: None, viewer: Viewer::Observer }
}

/// Reads all there is.
fn drain(cursor: &mut crate::Cursor) -> Traffic {
    while cursor.next().is_some() {}
    cursor.take_traffic()
}

#[test]
fn a_reader_is_told_apart_from_what_it_was_spared() {
    let store = Collection::new(Config { assume_complete: true, ..Config::new(Epoch(1)) });
    commit(&store, put("a", 0));
    let mut cursor = store.cursor(everything(), Signal::default());
    cursor.begin_snapshot(None, Vec::new());
    assert_eq!(drain(&mut cursor), Traffic { events: 1, coalesced: 0 }, "a snapshot spares nothing");
    for spec in 1..=10 {
        commit(&store, put("a", spec));
    }
    commit(&store, put("b", 1));
    assert_eq!(drain(&mut cursor), Traffic { events: 2, coalesced: 9 });
    commit(&store, put("b", 2));
    assert_eq!(drain(&mut cursor), Traffic { events: 1, coalesced: 0 });
    commit(&store, put("c", 1));
    commit(&store, Op::Delete(key("c")));
    assert_eq!(drain(&mut cursor), Traffic { events: 0, coalesced: 2 }, "an object that came and went");
    commit(&store, Op::Delete(key("b")));
    assert_eq!(drain(&mut cursor), Traffic { events: 1, coalesced: 0 });
}

#[test]
fn what_is_used_is_counted() {
    let store = Collection::new(Config::new(Epoch(1)));
    assert_eq!(store.usage(), Usage::default());
    commit(&store, put("a", 1));
    commit(&store, put("b", 1));
    commit(&store, Op::Delete(key("a")));
    let cursor = store.cursor(everything(), Signal::default());
    assert_eq!(store.usage(), Usage { tombstones: 1, ..Usage::default() }, "a feed is opened by the first look");
    let mut cursor = cursor;
    cursor.begin_snapshot(None, Vec::new());
    assert_eq!(store.usage().feeds, 1);
    drop(cursor);
    assert_eq!(store.usage().feeds, 0);

    #[allow(clippy::disallowed_methods, reason = "any time will do")]
    let now = Instant::now();
    let ttl = Duration::from_secs(1);
    store.acquire("kept", "holder", ttl * 3, now).unwrap();
    let given_back = store.acquire("given-back", "holder", ttl, now).unwrap().lease;
    store.release(&[crate::Guard { lease: given_back.name, token: given_back.token }], now);
    store.acquire("lost", "holder", ttl, now).unwrap();
    assert_eq!(store.usage().leases_expired, 0);
    store.tell_time(now + ttl * 2);
    assert_eq!(store.usage().leases_expired, 1);
}

/// What was watched, in its order.
#[derive(Debug, Default)]
struct Watched(Mutex<Vec<String>>);

impl DiskWatch for Watched {
    fn begins(&self, writes: usize, _: usize) {
        self.0.lock().push(format!("{writes} begin"));
    }

    fn ends(&self, written: bool) {
        self.0.lock().push(format!("written: {written}"));
    }
}

#[test]
fn who_watches_the_disk_hears_of_every_group() {
    let directory = tempfile::tempdir().unwrap();
    let watched = Arc::new(Watched::default());
    let config = Config { watch: watched.clone(), ..Config::new(Epoch(1)) };
    let store = Collection::open(&directory.path().join("store.redb"), config).unwrap();
    commit(&store, put("a", 1));
    commit(&store, put("b", 1));
    assert_eq!(*watched.0.lock(), ["1 begin", "written: true", "1 begin", "written: true"]);
    assert_eq!((store.usage().unsettled, store.usage().unsettled_bytes), (0, 0));
}
