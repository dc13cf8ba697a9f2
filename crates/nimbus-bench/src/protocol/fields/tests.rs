use nimbus_wire::v1::{self, frame::Frame};
use prost::Message as _;

use crate::protocol::{
    Heard,
    fields::{Counted, Fields},
};

const FRAMES: Counted = Counted { enter: Some(3), event: 1, ready: &[4, 5] };

/// What is heard of a frame that comes in pieces of every size.
fn check(frame: Frame, expected: Heard) {
    let bytes = v1::Frame { frame: Some(frame) }.encode_to_vec();
    for size in 1..=bytes.len().max(1) {
        let mut fields = Fields::new(FRAMES);
        for _ in 0..2 {
            fields.restart();
            let mut heard = Heard::default();
            for piece in bytes.chunks(size) {
                fields.take(piece, &mut heard).unwrap();
            }
            assert_eq!(heard, expected, "in pieces of {size}");
        }
    }
}

#[test]
fn events_of_a_batch_are_counted_whatever_the_pieces() {
    let removal = v1::Removal { name: "x".repeat(300), revision: u64::MAX, ..v1::Removal::default() };
    let event = v1::Event { change: Some(v1::event::Change::Delete(removal)), ..v1::Event::default() };
    let batch = v1::Batch { events: vec![event, v1::Event::default(), v1::Event::default()], revision: 1 << 40 };
    check(Frame::Batch(batch), Heard { events: 3, ready: false });
}

#[test]
fn the_end_of_a_snapshot_and_a_bookmark_say_that_everything_is_there() {
    let end = v1::SnapshotEnd { revision: 7, objects: 3, digest: vec![1; 16].into() };
    check(Frame::SnapshotEnd(end), Heard { events: 0, ready: true });
    check(Frame::Bookmark(v1::Bookmark { revision: 7, ..v1::Bookmark::default() }), Heard { events: 0, ready: true });
    check(Frame::Welcome(v1::Welcome { session: 1, ..v1::Welcome::default() }), Heard::default());
}
