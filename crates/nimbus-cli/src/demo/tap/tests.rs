//! Tests of reading along.

use nimbus_wire::v1::{self, Mode, frame::Frame};
use prost::Message as _;

use crate::demo::tap::{Tap, Traffic};

fn message(frame: Frame) -> Vec<u8> {
    let body = v1::Frame { frame: Some(frame) }.encode_to_vec();
    [&[0], &(body.len() as u32).to_be_bytes()[..], &body].concat()
}

fn batch(events: usize) -> Vec<u8> {
    message(Frame::Batch(v1::Batch { events: vec![v1::Event::default(); events], revision: 7 }))
}

fn welcome(mode: Mode) -> Vec<u8> {
    message(Frame::Welcome(v1::Welcome { mode: mode.into(), ..v1::Welcome::default() }))
}

fn http2(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, 0, 0, 0, 0, stream], payload].concat()
}

#[test]
fn events_are_counted_however_the_bytes_are_cut() {
    let settings = http2(4, 0, &[0; 12]);
    let two = [batch(2), batch(0)].concat();
    let split = batch(300);
    let (first, second) = split.split_at(split.len() / 2);
    let report = http2(0, 3, &batch(9));
    let bytes = [
        settings,
        http2(1, 1, b"headers"),
        http2(0, 1, &welcome(Mode::Delta)),
        http2(0, 1, &two),
        report,
        http2(0, 1, first),
        http2(6, 0, &[0; 8]),
        http2(0, 1, second),
        http2(0, 1, &[]),
        http2(0, 1, &welcome(Mode::Snapshot)),
    ]
    .concat();
    let expected = Traffic { bytes: bytes.len() as u64, events: 302, resumed: 1, restarted: 1 };
    for size in [1, 2, 3, 8, 9, 10, 1000, bytes.len()] {
        let (mut tap, mut seen) = (Tap::default(), Traffic::default());
        bytes.chunks(size).for_each(|chunk| seen += tap.read(chunk));
        assert_eq!(seen, expected, "in pieces of {size}");
    }
}

#[test]
fn what_cannot_be_read_does_not_pass_for_silence() {
    let nonsense = [&[0, 0, 0, 0, 3][..], &[0xff, 0xff, 0xff]].concat();
    assert_eq!(Tap::default().read(&http2(0, 1, &nonsense)).events, 1);
}
