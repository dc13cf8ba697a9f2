//! However the bytes are cut, and whatever they are.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::{
    frame::{HEAD, Head, flag, kind},
    input::PREFACE,
};

/// What a connection was told, as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Record {
    told: Vec<String>,
    open: Vec<u32>,
}

impl Record {
    fn tell(&mut self, what: &str, stream: u32, more: &dyn std::fmt::Debug) {
        // Data may be told of in one piece or in several, but frames are never told of in parts.
        self.told.push(format!("{what} {stream} {more:?}"));
    }
}

impl Receive for Record {
    fn request(&mut self, stream: u32, request: Request<()>, ends: bool) {
        self.tell("request", stream, &(request.method(), request.uri(), request.headers(), ends));
        self.open.push(stream);
    }

    fn data(&mut self, stream: u32, bytes: &[u8]) -> bool {
        self.tell("data", stream, &bytes);
        bytes.len().is_multiple_of(2)
    }

    fn end(&mut self, stream: u32, trailers: Option<HeaderMap>) {
        self.tell("end", stream, &trailers);
    }

    fn reset(&mut self, stream: u32, reason: Reason) -> u32 {
        self.tell("reset", stream, &reason);
        self.open.retain(|open| *open != stream);
        0
    }

    fn room(&mut self, stream: Option<u32>) {
        self.tell("room", stream.unwrap_or(0), &());
    }
}

fn config() -> Arc<Config> {
    Arc::new(Config { streams: 3, stream_window: 300, connection_window: 70_000, ..Config::default() })
}

/// What comes of these bytes, in pieces of such lengths.
fn run(bytes: &[u8], cuts: &[usize]) -> (Core, Record, Vec<u8>, Result<(), Fatal>) {
    let now = Instant::now();
    let (mut core, mut record, mut out) = (Core::new(config(), now), Record::default(), Output::default());
    let mut rest = bytes;
    for cut in cuts.iter().cycle() {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        rest = after;
        if let Err(fatal) = core.receive(piece, now, &mut out, &mut record) {
            core.fail(fatal, &mut out);
            return (core, record, out.take(), Err(fatal));
        }
        if rest.is_empty() {
            break;
        }
    }
    (core, record, out.take(), Ok(()))
}

/// The heads of the frames in these bytes, which are whole frames.
fn heads(mut bytes: &[u8]) -> Vec<Head> {
    let mut heads = Vec::new();
    while !bytes.is_empty() {
        let head = Head::read(bytes.first_chunk().unwrap());
        bytes = &bytes[HEAD + head.length..];
        heads.push(head);
    }
    heads
}

fn greeting() -> Vec<u8> {
    [&PREFACE[..], &framed(kind::SETTINGS, 0, 0, &[])].concat()
}

fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&Head { length: payload.len(), kind, flags, stream }.to_bytes(), payload].concat()
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let request = [&[0x83, 0x86, 0x84, 0x41, 1, b'a'][..], &[0x40, 1, b'b', 2, b'c', b'd']].concat();
    prop_oneof![
        4 => Just(request),
        1 => Just(vec![0x83, 0x86, 0x84, 0xbe]),
        1 => Just(vec![0, 0, 0, 8]),
        1 => Just(vec![0, 4, 0, 0, 1, 0, 0, 5, 0, 1, 0, 0]),
        1 => Just(vec![9; 8]),
        2 => prop::collection::vec(any::<u8>(), 0..60),
    ]
}

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![
        3 => Just(kind::HEADERS),
        2 => Just(kind::DATA),
        1 => 2_u8..=11,
    ];
    let flags = prop_oneof![Just(flag::END_HEADERS), Just(flag::END_HEADERS | flag::END_STREAM), any::<u8>()];
    let streams = prop_oneof![4 => prop::sample::select(vec![1_u32, 3, 5, 7, 9]), 1 => 0_u32..20];
    let frame = (kinds, flags, streams, payloads());
    prop::collection::vec(frame, 0..12).prop_map(|frames| {
        let frames = frames
            .into_iter()
            .map(|(kind, flags, stream, payload)| framed(kind, flags, stream, &payload));
        [greeting(), frames.flatten().collect()].concat()
    })
}

proptest! {
    #[test]
    fn pieces_are_read_as_the_whole(bytes in frames(), cuts in prop::collection::vec(1_usize..50, 1..20)) {
        let (_, whole, said, ended) = run(&bytes, &[usize::MAX]);
        let (_, record, said_in_pieces, ended_in_pieces) = run(&bytes, &cuts);
        prop_assert_eq!(record, whole);
        prop_assert_eq!(said_in_pieces, said);
        prop_assert_eq!(ended_in_pieces, ended);
    }

    /// What is written are frames, and none of a stream after its end.
    #[test]
    fn what_is_written_makes_sense(bytes in frames(), answers in prop::collection::vec(0_usize..2_000, 1..5)) {
        let (mut core, record, mut said, _) = run(&bytes, &[usize::MAX]);
        let mut out = Output::default();
        for (stream, length) in record.open.iter().zip(answers.iter().cycle()) {
            core.respond(*stream, StatusCode::OK, &HeaderMap::new(), false, &mut out);
            let room = core.room(*stream);
            let mut data = Bytes::from(vec![1; *length]);
            core.send(*stream, &mut data, &mut out);
            prop_assert_eq!(data.len(), length.saturating_sub(room));
            core.end(*stream, None, &mut out);
        }
        prop_assert!(core.streams.is_empty());
        said.extend(out.take());
        let (mut reset, mut ended) = (Vec::new(), Vec::new());
        for head in heads(&said) {
            let Head { stream, kind, flags, .. } = head;
            prop_assert!(!reset.contains(&stream), "{:?} after a reset", head);
            if kind == kind::RST_STREAM {
                reset.push(stream);
                continue;
            }
            prop_assert!(!ended.contains(&stream), "{:?} after the end", head);
            if matches!(kind, kind::DATA | kind::HEADERS) && flags & flag::END_STREAM != 0 {
                ended.push(stream);
            }
        }
    }

    #[test]
    fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500), greets in any::<bool>()) {
        let greeting = if greets { greeting() } else { Vec::new() };
        let (_, _, said, ended) = run(&[greeting, bytes].concat(), &[usize::MAX]);
        if greets && let Err(fatal) = ended {
            let last = heads(&said).pop().unwrap();
            prop_assert_eq!(last.kind, kind::GOAWAY);
            prop_assert!(!fatal.text.is_empty());
        }
    }
}

/// Nothing is kept of what was said, but for what is remembered of headers.
#[test]
fn an_idle_connection_holds_nothing() {
    let request = framed(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &[0x83, 0x86, 0x84]);
    let (mut core, _, _, ended) = run(&[greeting(), request].concat(), &[5]);
    assert_eq!(ended, Ok(()));
    let mut out = Output::default();
    core.respond(1, StatusCode::OK, &HeaderMap::new(), true, &mut out);
    assert!(core.block.is_none() && core.streams.is_empty() && core.reset.capacity() == 0);
    assert_eq!(core.decoder.table_size(), 0);
    assert_eq!(format!("{:?}", core.input), "Input { partial: [] }");
}
