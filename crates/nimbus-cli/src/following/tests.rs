//! What a watch says, frame by frame.

use nimbus_wire::v1::{self, Mode, event::Change, frame::Frame};

use crate::following::{Event, Follower, News};

const KIND: &str = "demo.v1.Zone";

fn digest(seed: u8) -> Vec<u8> {
    // The first byte is the bucket, which belongs to the name.
    vec![7, seed, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn object(uid: &str, generation: u64, revision: u64) -> v1::Object {
    let (kind, name, uid) = (KIND.to_owned(), "a".to_owned(), uid.to_owned());
    v1::Object { kind, name, uid, generation, revision, ..v1::Object::default() }
}

fn welcome(mode: Mode) -> Frame {
    let position = Some(v1::Position { epoch: 1, revision: 0, scope: 1 });
    let reason = "some of it is missing".to_owned();
    Frame::Welcome(v1::Welcome { position, mode: mode.into(), reason, ..v1::Welcome::default() })
}

fn put(object: v1::Object, seed: u8, revision: u64) -> Frame {
    let event = v1::Event { change: Some(Change::Put(object)), digest: digest(seed).into() };
    Frame::Batch(v1::Batch { events: vec![event], revision })
}

fn removal(revision: u64, out_of_scope: bool, group: u64) -> Frame {
    let (kind, name) = (KIND.to_owned(), "a".to_owned());
    let removal = v1::Removal { kind, name, revision, out_of_scope, ..v1::Removal::default() };
    let event = v1::Event { change: Some(Change::Delete(removal)), ..v1::Event::default() };
    Frame::Batch(v1::Batch { events: vec![event], revision: group })
}

fn begin() -> Frame {
    Frame::SnapshotBegin(v1::SnapshotBegin::default())
}

fn end(revision: u64, objects: u64, digest: Vec<u8>) -> Frame {
    Frame::SnapshotEnd(v1::SnapshotEnd { revision, objects, digest: digest.into() })
}

fn bookmark(revision: u64, seed: u8) -> Frame {
    let digest = digest(seed).into();
    Frame::Bookmark(v1::Bookmark { revision, digest, objects: 1, ..v1::Bookmark::default() })
}

/// What is said, in short.
fn take(follower: &mut Follower, frame: Frame) -> Vec<String> {
    let News { remark, events, restart, .. } = follower.take(v1::Frame { frame: Some(frame) }).unwrap();
    assert!(!restart);
    let said = events.into_iter().map(|event| match event {
        Event::Added(object) => format!("added {}", object.revision),
        Event::Changed { object, before } => format!("changed {} {before}->{}", object.revision, object.generation),
        Event::Removed { revision, out_of_scope, .. } => format!("removed {revision} {out_of_scope}"),
    });
    remark.into_iter().chain(said).collect()
}

/// Somebody who has the object at revision 1.
fn caught_up(skip: Option<u64>) -> Follower {
    let mut follower = Follower::new(skip);
    assert_eq!(take(&mut follower, welcome(Mode::Snapshot)), [""; 0]);
    assert_eq!(take(&mut follower, begin()), [""; 0]);
    let first = take(&mut follower, put(object("u", 1, 1), 1, 0));
    assert_eq!(first, if skip.is_some() { vec![] } else { vec!["added 1"] });
    assert_eq!(take(&mut follower, end(1, 1, digest(1))), [""; 0]);
    follower
}

#[test]
fn changes_are_told_from_additions_and_each_end_has_its_own_revision() {
    let mut follower = caught_up(None);
    assert_eq!(take(&mut follower, put(object("u", 2, 2), 2, 2)), ["changed 2 1->2"]);
    assert_eq!(take(&mut follower, removal(3, false, 5)), ["removed 3 false"]);
    assert_eq!(take(&mut follower, put(object("v", 1, 6), 3, 6)), ["added 6"]);
    assert_eq!(take(&mut follower, removal(6, true, 7)), ["removed 6 true"]);
}

#[test]
fn another_life_of_a_name_is_an_end_and_a_beginning() {
    let mut follower = caught_up(None);
    assert_eq!(take(&mut follower, put(object("v", 1, 4), 2, 4)), ["removed 4 false", "added 4"]);
}

#[test]
fn what_was_there_before_is_no_news_but_its_changes_are() {
    let mut follower = caught_up(Some(1));
    assert_eq!(take(&mut follower, put(object("u", 2, 2), 2, 2)), ["changed 2 1->2"]);
    let mut follower = Follower::new(Some(1));
    take(&mut follower, welcome(Mode::Snapshot));
    take(&mut follower, begin());
    assert_eq!(take(&mut follower, put(object("u", 1, 2), 1, 0)), ["added 2"], "it came after the look");
}

#[test]
fn a_lost_connection_is_said_once_and_so_is_what_was_missed() {
    let mut follower = caught_up(None);
    assert!(follower.disconnect());
    assert!(!follower.disconnect(), "it is still lost");
    take(&mut follower, welcome(Mode::Delta));
    assert_eq!(take(&mut follower, bookmark(1, 1)), ["resumed at revision 1: nothing was missed"]);
    assert_eq!(take(&mut follower, bookmark(1, 1)), [""; 0], "it is said once");

    assert!(follower.disconnect());
    take(&mut follower, welcome(Mode::Delta));
    let missed = take(&mut follower, put(object("u", 2, 2), 2, 2));
    assert_eq!(missed, ["resumed at revision 2: 1 change while away", "changed 2 1->2"]);
}

#[test]
fn a_resync_shows_what_differs_and_nothing_else() {
    let mut follower = caught_up(None);
    follower.disconnect();
    let waiting = take(&mut follower, welcome(Mode::Waiting));
    assert_eq!(waiting, ["connected; waiting for publishers to refill the bus: some of it is missing"]);
    take(&mut follower, welcome(Mode::Snapshot));
    take(&mut follower, begin());
    assert_eq!(take(&mut follower, put(object("u", 1, 9), 1, 0)), [""; 0], "it is the same");
    let same = take(&mut follower, end(9, 1, digest(1)));
    assert_eq!(same, ["resynchronised at revision 9: nothing was missed"]);

    follower.disconnect();
    take(&mut follower, welcome(Mode::Snapshot));
    take(&mut follower, begin());
    let gone = take(&mut follower, end(12, 0, vec![0; 16]));
    assert_eq!(gone, ["resynchronised at revision 12: 1 change while away", "removed 12 false"]);
}
