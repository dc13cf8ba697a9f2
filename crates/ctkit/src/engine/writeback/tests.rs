//! What becomes of wishes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use nimbus_core::{Generation, Revision, Spec as _};
use nimbus_store::{Content, Effect, Op, Outcome, Record, Step};
use nimbus_wire::v1;
use tokio::time::Instant;

use crate::{
    engine::writeback::{StatusWish, Usual, Writeback},
    fixtures,
    standing::{self, Code, READY, Ready},
};

fn record(generation: u64, status: Bytes) -> Record {
    let before = fixtures::record("web", 7);
    let content = Content { generation: Generation(generation), status, ..before.content() };
    Record::new(content, before.slot())
}

fn status(step: Option<Step>) -> Option<Bytes> {
    match step?.op {
        Op::Status(draft) => Some(draft.status),
        other => panic!("{other:?} is no status"),
    }
}

fn wish(record: &Record, code: Code, message: &str) -> StatusWish {
    let mut wish = StatusWish::of(record);
    wish.say(Some(Ready::new(code, message, record.generation())));
    wish
}

/// What is written is the same whether it was encoded before for another object or not.
#[test]
fn a_status_that_many_objects_have_is_what_each_would_have_by_itself() {
    let mut usual = Usual::default();
    for (code, message, generation) in [
        (Code::Reconciled, "", 1),
        (Code::Reconciled, "", 1),
        (Code::Reconciled, "", 2),
        (Code::Failed, "no route", 2),
        (Code::Failed, "no room", 2),
        (Code::Reconciled, "", 1),
    ] {
        let record = record(generation, Bytes::new());
        let wish = wish(&record, code, message);
        let mut standing = v1::Standing::default();
        standing::set_condition(&mut standing, Ready::new(code, message, Generation(generation)).to_condition());
        assert_eq!(status(wish.step(&record, &mut usual)), Some(standing.pack_to_vec().into()), "{code:?} {message}");
    }
}

#[test]
fn a_status_that_somebody_has_added_to_keeps_what_was_added() {
    let other = v1::Condition { r#type: "Other".to_owned(), ..v1::Condition::default() };
    let before = v1::Standing { conditions: vec![other.clone()], ..v1::Standing::default() };
    let record = record(1, before.pack_to_vec().into());
    let mut usual = Usual::default();
    usual.packed(&Ready::new(Code::Reconciled, "", Generation(1)));
    let written = status(wish(&record, Code::Reconciled, "").step(&record, &mut usual)).unwrap();
    let (standing, _) = standing::read(&written);
    assert!(standing.conditions.contains(&other) && standing.conditions.len() == 2, "{standing:?}");
}

/// A reactor may speak of readiness itself; of what the kit and the reactor say, the newer holds.
#[test]
fn what_was_said_last_of_readiness_is_written() {
    let record = record(1, Bytes::new());
    let own = v1::Condition { r#type: READY.to_owned(), code: "Mine".to_owned(), generation: 1, ..Default::default() };
    let code = |wish: &StatusWish| {
        let (standing, _) = standing::read(&status(wish.step(&record, &mut Usual::default())).unwrap());
        standing.conditions.into_iter().map(|condition| condition.code).collect::<Vec<_>>()
    };
    let mut kit_first = wish(&record, Code::Reconciled, "");
    kit_first.merge(StatusWish { conditions: vec![own.clone()], ..StatusWish::of(&record) });
    assert_eq!(code(&kit_first), ["Mine"]);
    let mut kit_last = StatusWish { conditions: vec![own], ..StatusWish::of(&record) };
    kit_last.merge(wish(&record, Code::Reconciled, ""));
    assert_eq!(code(&kit_last), ["Reconciled"]);
}

/// An object had failed, and its status said so, and a moment later it was fine. What was read of it by then was still what
/// the one who had led before had written: that it is fine. So there was nothing to write, and the failure stayed.
#[test]
fn what_is_wanted_is_not_taken_for_written_because_of_what_was_there_before() {
    let told = |code| {
        let ready = Ready::new(code, "", Generation(1)).to_condition();
        let standing = v1::Standing { conditions: vec![ready], ..v1::Standing::default() };
        let before = fixtures::record("web", 7);
        let status = Bytes::from(standing.pack_to_vec());
        Arc::new(Record::new(Content { status, observed: Generation(1), ..before.content() }, before.slot()))
    };
    let (old, new) = (told(Code::Reconciled), told(Code::Failed));
    let mut writeback = Writeback::default();
    let mut now = Instant::now();
    let next = |writeback: &mut Writeback, now, record: &Arc<Record>, is_old| {
        let steps = writeback.next("test", now, |_| Some((record.clone(), is_old)));
        status(steps.map(|mut steps| steps.remove(0)))
    };
    writeback.wish(old.key(), wish(&old, Code::Failed, ""));
    assert_eq!(next(&mut writeback, now, &old, false), Some(Bytes::copy_from_slice(new.status_bytes())));
    let outcome = Outcome { effect: Effect::Updated, uid: None, generation: Generation(1), revision: Revision(8) };
    assert_eq!(writeback.stored(&[outcome]), [(old.key().clone(), Revision(8))]);

    writeback.wish(old.key(), wish(&old, Code::Reconciled, ""));
    assert_eq!(next(&mut writeback, now, &old, true), None);
    assert!(!writeback.is_idle(), "it cannot be known yet");
    now = writeback.deadline().unwrap();
    assert_eq!(next(&mut writeback, now, &new, false), Some(Bytes::copy_from_slice(old.status_bytes())));

    // A source that has begun again counts from the beginning, and what is read of it is never newer.
    writeback.stored(&[]);
    writeback.wish(old.key(), wish(&old, Code::Reconciled, ""));
    let begun = now;
    while next(&mut writeback, now, &new, true).is_none() {
        now = writeback.deadline().unwrap();
        assert!(now <= begun + Duration::from_secs(3), "it is waited for for ever");
    }
}
