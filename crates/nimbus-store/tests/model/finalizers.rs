//! Finalizers and deletion, one rule at a time.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::{Annotations, Audience, Finalizers, Generation, PublisherId, Revision, Uid};
use nimbus_store::{
    Collection, Committed, Draft, Effect, FinalizersDraft, Op, Precondition, Reason, Record, Refused, Scope, Signal,
    StatusDraft, Step, Txn,
};
use nimbus_wire::v1::event::Change;

use crate::{
    guarantees::{collection, delete, draft, key, kind, publisher, put, txn},
    reader::decode,
    world::spec,
};

fn names(names: &[&str]) -> Finalizers {
    Finalizers::new(names.iter().copied()).unwrap()
}

fn edit(name: &str, add: &[&str], remove: &[&str]) -> Step {
    Op::Finalizers(FinalizersDraft { key: key(name), add: names(add), remove: names(remove) }).into()
}

/// A store with object `a`, which has these finalizers.
fn with_finalizers(finalizers: &[&str]) -> Collection {
    let store = collection(|_| {});
    commit(&store, put("a", 1, Audience::Everyone)).unwrap();
    commit(&store, edit("a", finalizers, &[])).unwrap();
    store
}

fn commit(store: &Collection, step: Step) -> Result<Effect, Refused> {
    store.commit(&txn(vec![step])).map(|committed| committed.outcomes[0].effect)
}

fn other() -> PublisherId {
    PublisherId::new("p1").unwrap()
}

fn by_other(step: Step) -> Txn {
    Txn { publisher: other(), ..txn(vec![step]) }
}

fn record(store: &Collection) -> Arc<Record> {
    store.state().get(&key("a")).unwrap().clone()
}

fn reason(done: Result<impl std::fmt::Debug, Refused>) -> Reason {
    match done {
        Err(Refused::Step { reason, .. }) => reason,
        other => panic!("expected a refused step, found {other:?}"),
    }
}

#[test]
fn a_delete_waits_for_all_finalizers_and_then_leaves_a_tombstone() {
    let store = with_finalizers(&["dns", "firewall"]);
    let (mut reader, uid) = (store.cursor(Scope::everything(), Signal::default()), record(&store).to_uid());
    while reader.next().is_some() {}

    assert_eq!(commit(&store, delete("a")), Ok(Effect::Deleting));
    let marked = record(&store);
    assert!(marked.is_deleting());
    assert_eq!((marked.revision(), marked.generation()), (Revision(3), Generation(1)));
    // Asking again changes nothing.
    assert_eq!(commit(&store, delete("a")), Ok(Effect::Deleting));
    assert_eq!(store.state().head(), Revision(3));

    assert_eq!(commit(&store, edit("a", &[], &["dns"])), Ok(Effect::Updated));
    assert_eq!(commit(&store, edit("a", &[], &["dns"])), Ok(Effect::Unchanged));
    let Committed { revision, outcomes } = store.commit(&txn(vec![edit("a", &[], &["firewall", "other"])])).unwrap();
    assert_eq!((revision, outcomes[0].revision, outcomes[0].effect), (Revision(5), Revision(5), Effect::Deleted));
    assert_eq!(outcomes[0].uid.as_ref(), Some(&uid));
    assert_eq!(store.state().objects(), 0);

    let frames = std::iter::from_fn(|| reader.next()).filter_map(|piece| match piece {
        nimbus_store::Piece::Frame(bytes) => Some(decode(&bytes)),
        _ => None,
    });
    let events: Vec<_> = frames.flat_map(|batch| batch.events).map(|event| event.change.unwrap()).collect();
    let [Change::Delete(removal)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&*removal.uid, removal.revision, removal.out_of_scope), (uid.as_str(), 5, false));

    // The name is free, for another life.
    assert_eq!(commit(&store, put("a", 1, Audience::Everyone)), Ok(Effect::Created));
    assert_ne!(record(&store).to_uid(), uid);
    assert!(!record(&store).is_deleting() && record(&store).finalizers().is_empty());
}

#[test]
fn without_a_delete_finalizers_come_and_go() {
    let store = with_finalizers(&["dns"]);
    assert_eq!(commit(&store, edit("a", &["dns"], &[])), Ok(Effect::Unchanged));
    assert_eq!(commit(&store, edit("a", &["firewall"], &["dns"])), Ok(Effect::Updated));
    assert_eq!(record(&store).finalizers(), names(&["firewall"]));
    // An upsert does not touch them, whoever writes it.
    assert_eq!(commit(&store, put("a", 2, Audience::Everyone)), Ok(Effect::Updated));
    let taken = store
        .commit(&by_other(Step { take_over: true, ..put("a", 3, Audience::Everyone) }))
        .unwrap();
    assert_eq!(taken.outcomes[0].effect, Effect::Updated);
    assert_eq!((record(&store).finalizers(), record(&store).manager()), (names(&["firewall"]), &other()));
    assert_eq!(store.commit(&by_other(edit("a", &[], &["firewall"]))).unwrap().outcomes[0].effect, Effect::Updated);
    assert_eq!(store.commit(&by_other(delete("a"))).unwrap().outcomes[0].effect, Effect::Deleted);
    assert_eq!(reason(commit(&store, edit("a", &["dns"], &[]))), Reason::NoSuchObject);
}

#[test]
fn an_object_that_is_being_deleted_is_not_changed_any_more() {
    let store = with_finalizers(&["dns"]);
    commit(&store, delete("a")).unwrap();
    let waits = Reason::Deleting(names(&["dns"]));
    assert_eq!(commit(&store, put("a", 1, Audience::Everyone)), Ok(Effect::Unchanged), "it says nothing new");
    assert_eq!(reason(commit(&store, put("a", 2, Audience::Everyone))), waits);
    assert_eq!(reason(commit(&store, put("a", 1, Audience::Agents(Arc::default())))), waits);
    let new_life = Draft { uid: Some(Uid::new("new").unwrap()), ..draft("a", 1, Audience::Everyone) };
    assert_eq!(reason(commit(&store, Op::Upsert(new_life).into())), waits);
    assert_eq!(reason(commit(&store, edit("a", &["late"], &[]))), waits);
    assert_eq!(reason(commit(&store, edit("a", &["late"], &["dns"]))), waits, "it does not go on in another's name");
    let taken = by_other(Step { take_over: true, ..put("a", 1, Audience::Everyone) });
    assert_eq!(reason(store.commit(&taken)), waits);
    assert!(waits.to_string().contains("waits for dns"), "{waits}");

    // How the work goes can be said.
    let status = StatusDraft { key: key("a"), status: spec(&kind(), 1, 2), observed: Generation(1) };
    assert_eq!(commit(&store, Op::Status(status).into()), Ok(Effect::Updated));
    assert_eq!(store.state().head(), Revision(4));
}

/// A new life of the name took the place of the old one, and nobody who had to clean up after that one was asked.
#[test]
fn a_new_life_does_not_begin_before_the_finalizers_of_the_old_one_are_done() {
    let store = with_finalizers(&["dns"]);
    let new_life = || Draft { uid: Some(Uid::new("new").unwrap()), ..draft("a", 1, Audience::Everyone) };
    let refused = reason(commit(&store, Op::Upsert(new_life()).into()));
    assert_eq!(refused, Reason::Unfinished(names(&["dns"])));
    commit(&store, edit("a", &[], &["dns"])).unwrap();
    assert_eq!(commit(&store, Op::Upsert(new_life()).into()), Ok(Effect::Created));
}

#[test]
fn preconditions_hold_for_finalizers_and_for_what_they_keep() {
    let store = with_finalizers(&["dns"]);
    let when = |precondition: Precondition, step: Step| Step { precondition, ..step };
    let at = |revision| Precondition { revision: Some(Revision(revision)), ..Precondition::default() };
    let absent = Precondition { absent: true, ..Precondition::default() };
    let fails = |step| matches!(reason(commit(&store, step)), Reason::Precondition { .. });
    assert!(fails(when(at(1), delete("a"))));
    assert_eq!(commit(&store, when(at(2), delete("a"))), Ok(Effect::Deleting));
    assert!(fails(when(absent, put("a", 1, Audience::Everyone))), "it is still there");
    assert!(fails(when(at(2), edit("a", &[], &["dns"]))));
    assert_eq!(commit(&store, when(at(3), edit("a", &[], &["dns"]))), Ok(Effect::Deleted));
}

#[test]
fn only_the_owner_deletes_but_everybody_finishes() {
    let store = with_finalizers(&["dns"]);
    assert_eq!(reason(store.commit(&by_other(delete("a")))), Reason::Foreign(publisher()));
    let take_over = Step { take_over: true, ..delete("a") };
    assert_eq!(store.commit(&by_other(take_over)).unwrap().outcomes[0].effect, Effect::Deleting);
    assert_eq!(record(&store).manager(), &publisher(), "a delete makes nobody the owner");
    assert_eq!(store.commit(&by_other(edit("a", &[], &["dns"]))).unwrap().outcomes[0].effect, Effect::Deleted);
}

#[test]
fn a_sweep_marks_what_has_finalizers_and_counts_it_once() {
    let store = with_finalizers(&["dns"]);
    commit(&store, put("b", 1, Audience::Everyone)).unwrap();
    let sync = || {
        let id = store.begin_sync(&publisher(), 0, BTreeSet::from([kind()])).unwrap();
        store.end_sync(&id).unwrap()
    };
    let (revision, summary) = sync();
    assert_eq!((revision, summary.deleted), (Revision(4), 2));
    assert!(record(&store).is_deleting());
    assert_eq!(store.state().objects(), 1);
    let (revision, summary) = sync();
    assert_eq!((revision, summary.deleted), (Revision(4), 0), "it was marked before");
    // It still counts as named, if its publisher says it.
    let id = store.begin_sync(&publisher(), 0, BTreeSet::from([kind()])).unwrap();
    let items = store.sync_items(&id, vec![draft("a", 1, Audience::Everyone)]).unwrap();
    assert_eq!(items.outcomes[0].effect, Effect::Unchanged);
    let changed = store.sync_items(&id, vec![draft("a", 2, Audience::Everyone)]);
    assert!(matches!(reason(changed), Reason::Deleting(_)));
    assert_eq!(store.end_sync(&id).unwrap().1.deleted, 0);
}

/// The mark of a delete takes a few bytes. An object as large as an object may be, or a collection without room for more,
/// could not be deleted, and the end of a sync panicked.
#[test]
fn there_is_always_room_for_a_delete() {
    let (size, bytes) = {
        let store = with_finalizers(&["dns", "firewall"]);
        (record(&store).size(), store.state().bytes())
    };
    for sweep in [false, true] {
        let store = collection(|config| {
            config.limits.object_bytes = size;
            config.limits.bytes = bytes;
            config.limits.finalizers = 2;
        });
        commit(&store, put("a", 1, Audience::Everyone)).unwrap();
        commit(&store, edit("a", &["dns", "firewall"], &[])).unwrap();
        if sweep {
            let id = store.begin_sync(&publisher(), 0, BTreeSet::from([kind()])).unwrap();
            assert_eq!(store.end_sync(&id).unwrap().1.deleted, 1);
        } else {
            assert_eq!(commit(&store, delete("a")), Ok(Effect::Deleting));
        }
        assert!(record(&store).size() > size);
        assert_eq!(commit(&store, edit("a", &[], &["dns"])), Ok(Effect::Updated));
        assert_eq!(commit(&store, edit("a", &[], &["firewall"])), Ok(Effect::Deleted));
    }
}

#[test]
fn finalizers_are_limited() {
    let store = collection(|config| config.limits.finalizers = 2);
    commit(&store, put("a", 1, Audience::Everyone)).unwrap();
    let refused = reason(commit(&store, edit("a", &["x", "y", "z"], &[])));
    assert_eq!(refused, Reason::TooLarge { limit: "finalizers", size: 3, max: 2 });
    commit(&store, edit("a", &["x", "y"], &[])).unwrap();
    assert_eq!(commit(&store, edit("a", &["z"], &["x"])), Ok(Effect::Updated), "one for another");
}

#[test]
fn annotations_are_a_part_of_the_object_but_not_of_its_generation() {
    let store = collection(|_| {});
    let with = |value: &str| {
        let annotations = Annotations::new([("note".to_owned(), value.to_owned())].into()).unwrap();
        Op::Upsert(Draft { annotations, ..draft("a", 1, Audience::Everyone) }).into()
    };
    assert_eq!(commit(&store, with("one")), Ok(Effect::Created));
    let before = record(&store).leaf(false);
    assert_eq!(commit(&store, with("one")), Ok(Effect::Unchanged));
    assert_eq!(commit(&store, with("two")), Ok(Effect::Updated));
    let after = record(&store);
    assert_eq!((after.annotations().get("note"), after.generation()), (Some("two"), Generation(1)));
    assert_ne!(after.leaf(false), before, "readers can tell");
    assert_eq!(commit(&store, put("a", 1, Audience::Everyone)), Ok(Effect::Updated), "what is not said is gone");
    assert!(record(&store).annotations().is_empty());
}
