//! What must not be kept, and what must not be lost, although nobody looks: each begins with its story.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use nimbus_core::{Audience, Generation, Kind, Revision};
use nimbus_store::{
    Collection, Config, Cursor, Draft, Effect, Fields, Filter, Op, Reason, Refused, Scope, Signal, Txn,
};
use nimbus_wire::v1;

use crate::guarantees::{agent, collection, delete, draft, key, kind, named, publisher, put, txn};

fn filtered(filter: &v1::Filter) -> Scope {
    Scope { filter: Filter::compile(Some(filter)).unwrap().map(Arc::new), ..Scope::everything() }
}

fn by_field() -> Scope {
    filtered(&v1::Filter { fields: vec!["spec.zone=a".into()], ..Default::default() })
}

/// Takes a snapshot and everything after it.
fn read(store: &Collection, scope: Scope) -> Cursor {
    let mut cursor = store.cursor(scope, Signal::default());
    cursor.begin_snapshot(None, Vec::new());
    drain(&mut cursor);
    cursor
}

fn drain(cursor: &mut Cursor) {
    while cursor.next().is_some() {}
}

fn fill(store: &Collection, first: u8) {
    let steps = (0..100).map(|at| put(&format!("n{at}"), first, Audience::Everyone));
    store.commit(&txn(steps.collect())).unwrap();
}

/// Every spec has the zone; the first time that it is asked, something else happens.
struct Meanwhile {
    store: OnceLock<Collection>,
    armed: AtomicBool,
}

impl Fields for Meanwhile {
    fn field(&self, _: &Kind, _: &[u8], _: &str) -> Option<String> {
        if self.armed.swap(false, Ordering::SeqCst) {
            let store = self.store.get().unwrap();
            store.commit(&txn(vec![delete("a")])).unwrap();
            store.trim(store.state().head());
        }
        Some("a".into())
    }
}

/// The view of a filter is built without the writer's lock, and then catches up from tombstones. If those were forgotten
/// meanwhile, an object that had ended stayed in the view for ever, and its digest proved it.
#[test]
fn an_object_that_ends_while_a_view_is_built_is_not_in_it() {
    let meanwhile = Arc::new(Meanwhile { store: OnceLock::new(), armed: AtomicBool::new(false) });
    let store = collection(|config| config.fields = meanwhile.clone());
    meanwhile.store.set(store.clone()).unwrap();
    store
        .commit(&txn(vec![put("a", 1, Audience::Everyone), put("b", 1, Audience::Everyone)]))
        .unwrap();
    meanwhile.armed.store(true, Ordering::SeqCst);
    let mut cursor = read(&store, by_field());
    assert!(!meanwhile.armed.load(Ordering::SeqCst), "it happened");
    assert_eq!(cursor.bookmark().unwrap().objects, 1);
}

/// Which filters an object was in was found by reading its fields again. After a registration had renamed a field, the
/// delete of the object reached nobody.
#[test]
fn an_object_that_ends_after_its_schema_changed_ends_for_those_who_have_it() {
    struct Renamed(AtomicBool);
    impl Fields for Renamed {
        fn field(&self, _: &Kind, _: &[u8], _: &str) -> Option<String> {
            (!self.0.load(Ordering::SeqCst)).then(|| "a".into())
        }
    }
    let renamed = Arc::new(Renamed(AtomicBool::new(false)));
    let store = collection(|config| config.fields = renamed.clone());
    store.commit(&txn(vec![put("a", 1, Audience::Everyone)])).unwrap();
    let mut cursor = read(&store, by_field());
    assert_eq!(cursor.bookmark().unwrap().objects, 1);
    renamed.0.store(true, Ordering::SeqCst);
    store.commit(&txn(vec![delete("a")])).unwrap();
    drain(&mut cursor);
    assert_eq!(cursor.bookmark().unwrap().objects, 0);
}

/// A kind that one publisher had completed stayed complete while the next one was half-way through its first sync.
#[test]
fn a_kind_is_not_complete_while_a_publisher_has_begun_and_not_finished() {
    let store = collection(|config| config.assume_complete = false);
    let other = nimbus_core::PublisherId::new("p1").unwrap();
    let first = store.begin_sync(&publisher(), 0, [kind()].into()).unwrap();
    store.end_sync(&first).unwrap();
    assert!(store.state().is_complete(&kind()));
    let second = store.begin_sync(&other, 0, [kind()].into()).unwrap();
    assert!(!store.state().is_complete(&kind()));
    store.abort_sync(&second);
    assert!(!store.state().is_complete(&kind()), "it has not said yet what it has");
    let third = store.begin_sync(&other, 0, [kind()].into()).unwrap();
    store.end_sync(&third).unwrap();
    assert!(store.state().is_complete(&kind()));
    let again = store.begin_sync(&other, 0, [kind()].into()).unwrap();
    assert!(store.state().is_complete(&kind()), "a publisher that syncs again takes nothing back");
    store.abort_sync(&again);
}

/// Each delete left a tombstone in the view of every filter that anybody had ever used, and all of them counted.
#[test]
fn filters_that_nobody_uses_do_not_shorten_the_memory_of_ends() {
    let store = collection(|config| config.limits.tombstones = 100);
    fill(&store, 1);
    for at in 0..30 {
        let filter = v1::Filter { selector: format!("!x{at}"), ..Default::default() };
        drop(store.cursor(filtered(&filter), Signal::default()));
    }
    let before = store.state().head();
    for at in 0..5 {
        store.commit(&txn(vec![delete(&format!("n{at}"))])).unwrap();
    }
    assert!(store.state().horizon() <= before, "five ends, and a hundred are remembered");
}

/// The view of a filter by names took over the tombstones of all that it could have had, and so pushed out others.
#[test]
fn subscribing_does_not_move_the_horizon() {
    let store = collection(|config| config.limits.tombstones = 150);
    fill(&store, 1);
    let before = store.state().head();
    for at in 0..100 {
        store.commit(&txn(vec![delete(&format!("n{at}"))])).unwrap();
    }
    for at in 0..3 {
        let names = (0..100).map(|at| format!("n{at}")).chain([format!("x{at}")]).collect();
        drop(store.cursor(filtered(&v1::Filter { names, ..Default::default() }), Signal::default()));
    }
    store.commit(&txn(vec![put("new", 1, Audience::Everyone)])).unwrap();
    assert!(store.state().horizon() <= before);
}

/// Views of filters without subscribers are kept for those who come back, but not without end.
#[test]
fn what_is_kept_for_filters_without_subscribers_is_bounded() {
    let store = collection(|config| config.limits.idle_filters = 1000);
    fill(&store, 1);
    let scope = |at: usize| filtered(&v1::Filter { selector: format!("!x{at}"), ..Default::default() });
    let head = store.state().head();
    for at in 0..50 {
        drop(read(&store, scope(at)));
    }
    fill(&store, 2);
    let resumed = |at: usize| store.cursor(scope(at), Signal::default()).resume(head, None);
    assert!(resumed(49), "the view of the last one is still there");
    assert!(!resumed(0), "nine of a hundred objects each are kept");
}

/// The last look at a feed was kept with everything in it. With only stalled readers, a whole old collection stayed.
#[test]
fn a_reader_that_does_not_look_any_more_keeps_nothing() {
    let store = collection(|_| {});
    fill(&store, 1);
    let old = Arc::downgrade(store.state().get(&key("n5")).unwrap());
    let stalled = read(&store, agent("a0", &[]));
    let observer = read(&store, Scope::everything());
    fill(&store, 2);
    assert!(old.upgrade().is_none());
    drop((stalled, observer));
}

/// An agent that keeps an object while its audience grows kept the old audience with it, and there were as many old
/// audiences as agents.
#[test]
fn an_audience_that_grows_by_one_agent_at_a_time_is_kept_once() {
    let store = collection(|_| {});
    let mut old = Vec::new();
    let names: Vec<String> = (0..50).map(|at| format!("a{at}")).collect();
    for count in 1..=names.len() {
        let named = named(&names[..count].iter().map(String::as_str).collect::<Vec<_>>());
        store.commit(&txn(vec![put("x", 1, named)])).unwrap();
        old.push(Arc::downgrade(store.state().get(&key("x")).unwrap()));
    }
    assert_eq!(old.iter().filter(|record| record.upgrade().is_some()).count(), 1);
    let mut first = read(&store, agent("a0", &[]));
    assert_eq!(first.bookmark().unwrap().objects, 1);
}

/// The highest generation overflowed to 0 with the next spec.
#[test]
fn there_is_nothing_after_the_highest_generation() {
    let store = Collection::new(Config::new(nimbus_core::Epoch(1)));
    let write = |first: u8, generation: Option<u64>| {
        let draft = Draft { generation: generation.map(Generation), ..draft("x", first, Audience::Everyone) };
        store.commit(&Txn {
            publisher: publisher(),
            fence: 0,
            leases: Vec::new(),
            steps: vec![Op::Upsert(draft).into()],
        })
    };
    assert_eq!(write(1, Some(u64::MAX)).unwrap().outcomes[0].effect, Effect::Created);
    let refused = write(2, None).unwrap_err();
    assert!(matches!(refused, Refused::Step { reason: Reason::SameGeneration(_), .. }), "{refused}");
    assert_eq!(store.state().head(), Revision(1));
}
