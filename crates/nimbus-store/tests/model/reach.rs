//! What of a state reaches a reader: asked for many readers at a time, and the same as reading.

use std::sync::Arc;

use nimbus_core::{AgentId, Audience, Labels, Revision, Selector};
use nimbus_store::{Filter, NoFields, Reach, Scope, Signal};
use nimbus_wire::v1;

use crate::guarantees::{agent, collection, delete, key, named, put, txn};

fn zone(name: &str) -> Audience {
    Audience::Selector(Selector::parse(&format!("zone={name}")).unwrap())
}

#[test]
fn the_last_and_the_next_change_are_those_of_a_readers_own_lanes() {
    fn check(store: &nimbus_store::Collection, scope: &Scope, last: u64, next: [Option<u64>; 3]) {
        let state = store.state();
        assert_eq!(state.last_change(scope), Revision(last), "{scope:?}");
        let found = [0, 2, 4].map(|after| state.next_change(scope, Revision(after)).map(|next| next.0));
        assert_eq!(found, next, "{scope:?}");
        // Reading leads to the same revision.
        let mut cursor = store.cursor(scope.clone(), Signal::default());
        cursor.begin_snapshot(None, Vec::new());
        while cursor.next().is_some() {}
        assert_eq!(cursor.last_read(), Revision(last));
    }
    let store = collection(|_| {});
    for step in [
        put("everyones", 1, Audience::Everyone),
        put("zoned", 1, zone("a")),
        put("mine", 1, named(&["me"])),
        put("gone", 1, zone("b")),
        delete("gone"),
    ] {
        store.commit(&txn(vec![step])).unwrap();
    }
    check(&store, &Scope::everything(), 5, [Some(1), Some(3), Some(5)]);
    check(&store, &agent("me", &[]), 3, [Some(1), Some(3), None]);
    check(&store, &agent("you", &[]), 1, [Some(1), None, None]);
    check(&store, &agent("you", &[("zone", "a")]), 2, [Some(1), None, None]);
    check(&store, &agent("you", &[("zone", "b")]), 5, [Some(1), Some(5), Some(5)]);
    let state = store.state();
    let (scope, labels) = (agent("you", &[("zone", "b")]), [("zone".to_owned(), "b".to_owned())].into());
    let changed = |at| state.changed_shared(Reach::of(&scope), &Labels::new(&labels).unwrap(), Revision(at));
    assert_eq!([1, 2, 3, 4, 5].map(changed), [true, false, false, false, true], "4 ended at 5");
    assert!(state.changed_own(Reach::of(&scope), &AgentId::new("me").unwrap(), Revision(3)));
    let trace = |at| {
        let trace = state.trace(Revision(at));
        let objects: Vec<_> = trace.objects.iter().map(|(key, of)| (key.name().to_owned(), of.0)).collect();
        (objects, trace.names_agents)
    };
    assert_eq!(trace(2), (vec![("zoned".to_owned(), 1)], false));
    assert_eq!(trace(3), (vec![("mine".to_owned(), 1)], true));
    assert_eq!(trace(4), (vec![], false), "what it wrote ended since");
    assert_eq!(trace(5), (vec![("gone".to_owned(), 0)], true));
}

#[test]
fn an_end_is_known_until_the_name_lives_again_or_the_end_is_forgotten() {
    let store = collection(|_| {});
    store.commit(&txn(vec![put("x", 1, Audience::Everyone)])).unwrap();
    assert_eq!(store.state().end_of(&key("x")), None);
    store.commit(&txn(vec![delete("x")])).unwrap();
    assert_eq!(store.state().end_of(&key("x")), Some(Revision(2)));
    store.commit(&txn(vec![put("x", 1, Audience::Everyone)])).unwrap();
    assert_eq!(store.state().end_of(&key("x")), None);
    store.commit(&txn(vec![delete("x")])).unwrap();
    store.trim(Revision(4));
    assert_eq!(store.state().end_of(&key("x")), None);
}

#[test]
fn named_agents_are_sent_an_object_when_they_are_named_or_it_changes() {
    let store = collection(|_| {});
    let sent = || {
        let state = store.state();
        let named = state
            .named(&key("x"))
            .map(|named| named.map(|(id, at)| (id.to_string(), at.0)).collect::<Vec<_>>());
        named.unwrap_or_default()
    };
    store.commit(&txn(vec![put("x", 1, named(&["a"]))])).unwrap();
    store.commit(&txn(vec![put("x", 1, named(&["a", "b"]))])).unwrap();
    assert_eq!(sent(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    let state = store.state();
    let record = state.get(&key("x")).unwrap();
    assert_eq!(["a", "b"].map(|id| state.sent_at(record, &AgentId::new(id).unwrap()).0), [1, 2]);
    store.commit(&txn(vec![put("x", 2, named(&["a", "b"]))])).unwrap();
    assert_eq!(sent(), [("a".to_owned(), 3), ("b".to_owned(), 3)]);
    store.commit(&txn(vec![put("x", 2, Audience::Everyone)])).unwrap();
    assert!(store.state().named(&key("x")).is_none());
}

#[test]
fn a_filter_says_what_an_object_lacks_and_what_it_shows() {
    let store = collection(|_| {});
    store.commit(&txn(vec![put("x", 1, Audience::Everyone)])).unwrap();
    let wire = v1::Filter { names: vec!["y".into()], selector: "tier=web".into(), ..Default::default() };
    let filter = Arc::new(Filter::compile(Some(&wire)).unwrap().unwrap());
    assert_eq!(filter.to_wire(), wire);
    let state = store.state();
    let record = state.get(&key("x")).unwrap();
    assert_eq!(filter.refusal(record, &NoFields).as_deref(), Some("name in (y), found \"x\""));
    assert_eq!(state.shows(&key("x"), &filter), None, "nobody reads through it");
    let scope = Scope { filter: Some(filter.clone()), ..Scope::everything() };
    let _reader = store.cursor(scope, Signal::default());
    assert_eq!(store.state().shows(&key("x"), &filter), Some(false));
}
