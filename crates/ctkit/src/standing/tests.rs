//! Statuses as they are read, merged and written.

use std::sync::Arc;

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Finalizers, Generation, Kind, Labels, ObjectKey, PublisherId, Revision, Spec as _, Uid,
};
use nimbus_store::{Content, Op, Record, Slot};
use nimbus_wire::v1::{self, ConditionState};
use prost::Message as _;

use crate::standing::{Code, Found, Ready, Seen, Write, detail, edit_detail, read, set_condition, set_detail, write};

fn condition(word: &str, generation: u64) -> v1::Condition {
    v1::Condition { r#type: word.to_owned(), generation, ..v1::Condition::default() }
}

fn conditions(standing: &v1::Standing) -> String {
    let show = |it: &v1::Condition| format!("{}@{}", it.r#type, it.generation);
    standing.conditions.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn bytes(standing: &v1::Standing) -> Bytes {
    standing.pack().encode_to_vec().into()
}

fn record(generation: u64, status: Bytes, observed: u64) -> Record {
    let content = Content {
        key: ObjectKey::new(Kind::new("demo.v1.Thing").unwrap(), "", "one").unwrap(),
        uid: Uid::new("life-1").unwrap(),
        generation: Generation(generation),
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        manager: PublisherId::new("p").unwrap(),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: Audience::Everyone,
        spec: Bytes::new(),
        status,
        observed: Generation(observed),
    };
    Record::new(content, Slot { revision: Revision(9), seq: 0 })
}

fn seen(life: u64, generation: u64) -> Seen {
    Seen { uid: Uid::new(&format!("life-{life}")).unwrap(), generation: Generation(generation) }
}

#[test]
fn a_status_that_is_not_ours_counts_as_none_and_is_named() {
    let ours = v1::Standing { conditions: vec![condition("Ready", 1)], detail: None };
    assert_eq!(read(&bytes(&ours)), (ours, Found::Ours));
    let none = v1::Standing::default;
    assert_eq!(read(&[]), (none(), Found::Absent));
    let foreign = v1::Key { name: "x".to_owned(), ..v1::Key::default() }.pack().encode_to_vec();
    assert_eq!(read(&foreign), (none(), Found::Foreign("nimbus.v1.Key".to_owned())));
    assert_eq!(read(&[0xff, 0xff]), (none(), Found::Foreign(String::new())));
    let broken = prost_types::Any { type_url: v1::Standing::default().pack().type_url, value: vec![0xff] };
    assert_eq!(read(&broken.encode_to_vec()), (none(), Found::Foreign("nimbus.v1.Standing".to_owned())));
}

#[test]
fn there_is_one_condition_of_each_type_in_their_order() {
    let mut standing = v1::Standing::default();
    assert!(set_condition(&mut standing, condition("Ready", 1)));
    assert!(set_condition(&mut standing, condition("Applied", 1)));
    assert!(set_condition(&mut standing, condition("Ready", 2)));
    assert_eq!(conditions(&standing), "Applied@1 Ready@2");
    assert!(!set_condition(&mut standing, condition("Ready", 2)), "the same again is no change");
}

#[test]
fn a_condition_does_not_give_way_to_one_of_an_older_generation() {
    let mut standing = v1::Standing { conditions: vec![condition("Ready", 3)], detail: None };
    assert!(!set_condition(&mut standing, condition("Ready", 2)));
    assert_eq!(conditions(&standing), "Ready@3");
}

#[test]
fn of_conditions_that_are_there_twice_the_newest_stays() {
    let twice = vec![condition("Ready", 1), condition("Ready", 3), condition("Applied", 1)];
    let mut standing = v1::Standing { conditions: twice, detail: None };
    assert!(set_condition(&mut standing, condition("Ready", 2)));
    assert_eq!(conditions(&standing), "Applied@1 Ready@3");
}

#[test]
fn only_what_is_reconciled_is_ready() {
    let state = |code| Ready::new(code, "", Generation(1)).to_condition().state();
    assert_eq!(state(Code::Reconciled), ConditionState::True);
    assert_eq!(state(Code::Paused), ConditionState::Unspecified);
    for code in [Code::Failed, Code::Waiting, Code::Quarantined, Code::Deleting] {
        assert_eq!(state(code), ConditionState::False, "{code:?}");
    }
    let failed = Ready::new(Code::Failed, "no route", Generation(7)).to_condition();
    assert_eq!((&*failed.r#type, &*failed.code, &*failed.message), ("Ready", "Failed", "no route"));
    assert_eq!(failed.generation, 7);
}

#[test]
fn a_detail_is_edited_from_what_is_there() {
    let mut standing = v1::Standing::default();
    assert!(edit_detail(&mut standing, |key: &mut v1::Key| key.name.push('a')));
    assert!(edit_detail(&mut standing, |key: &mut v1::Key| key.name.push('b')));
    assert_eq!(detail::<v1::Key>(&standing).0.name, "ab");
    assert!(!edit_detail(&mut standing, |_: &mut v1::Key| {}), "nothing was edited");
}

#[test]
fn a_detail_of_another_type_is_replaced_and_not_misread() {
    let mut standing = v1::Standing::default();
    set_detail(&mut standing, &v1::LeaseToken { name: "x".to_owned(), token: 1 });
    assert_eq!(detail::<v1::Key>(&standing), (v1::Key::default(), Found::Foreign("nimbus.v1.LeaseToken".to_owned())));
    assert!(set_detail(&mut standing, &v1::Key::default()), "an empty message of another type is a change");
    assert_eq!(detail::<v1::Key>(&standing), (v1::Key::default(), Found::Ours));
}

#[test]
fn a_detail_that_is_equal_keeps_its_bytes() {
    let key = v1::Key { kind: "k".to_owned(), name: "n".to_owned(), ..v1::Key::default() };
    // The same message with its fields in another order.
    let other = [&b"\x1a\x01n"[..], b"\x0a\x01k"].concat();
    let any = prost_types::Any { value: other, ..key.pack() };
    let mut standing = v1::Standing { conditions: Vec::new(), detail: Some(any.clone()) };
    assert!(!set_detail(&mut standing, &key));
    assert_eq!(standing.detail, Some(any));
}

#[test]
fn a_status_is_written_only_if_it_differs() {
    let standing = v1::Standing { conditions: vec![condition("Ready", 2)], detail: None };
    assert!(matches!(write(&record(2, bytes(&standing), 2), &seen(1, 2), standing.clone()), Write::Unchanged));
    assert!(matches!(write(&record(3, bytes(&standing), 2), &seen(1, 3), standing.clone()), Write::Needed(_)));
    let Write::Needed(step) = write(&record(2, Bytes::new(), 0), &seen(1, 2), standing.clone()) else {
        panic!("there is none yet")
    };
    let Op::Status(draft) = step.op else { panic!("only the status is written") };
    assert_eq!((draft.observed, draft.status), (Generation(2), bytes(&standing)));
    assert_eq!(step.precondition.revision, Some(Revision(9)), "others may write, too");
    assert_eq!(step.precondition.uid, Some(Uid::new("life-1").unwrap()));
}

/// H16: nobody is told that an intent is fulfilled which the reactor has not seen.
#[test]
fn a_status_never_speaks_of_a_generation_that_was_not_seen() {
    let ahead = v1::Standing { conditions: vec![condition("Applied", 2), condition("Ready", 3)], detail: None };
    let Write::Needed(step) = write(&record(3, Bytes::new(), 1), &seen(1, 2), ahead) else {
        panic!("it is newer than the one that is there")
    };
    let Op::Status(draft) = step.op else { panic!("only the status is written") };
    assert_eq!(draft.observed, Generation(2), "the record is at 3, the reactor saw 2");
    assert_eq!(conditions(&read(&draft.status).0), "Applied@2");
}

/// F48: a status does not go back in time, nor from one life of an object to the next.
#[test]
fn a_status_of_an_older_generation_or_another_life_is_dropped() {
    let standing = v1::Standing::default();
    assert!(matches!(write(&record(3, Bytes::new(), 3), &seen(1, 2), standing.clone()), Write::Superseded));
    assert!(matches!(write(&record(1, Bytes::new(), 0), &seen(2, 1), standing.clone()), Write::Superseded));
    assert!(matches!(write(&record(2, Bytes::new(), 0), &seen(1, 3), standing), Write::Behind));
}
