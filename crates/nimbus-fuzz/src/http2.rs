//! A connection, as a bus gets it from whoever connects.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use nimbus_http2::{Config, Core, Fatal, Output, Reason, Receive};
use tokio::time::Instant;

/// What every connection begins with, and then settings.
pub(crate) const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// What a connection was told.
#[derive(Debug, Default, PartialEq)]
struct Told {
    all: Vec<String>,
    open: Vec<u32>,
    unread: u32,
}

const HEAD: usize = 9;
const HEADERS: u8 = 1;
const DATA: u8 = 0;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

/// What comes after the greeting. Nothing panics, pieces are read as the whole, no more is taken than there is room for, and what
/// is written are frames, none of a stream after its end; who is sent away is told why.
pub(crate) fn check(bytes: &[u8]) {
    let (mut core, told, mut out, ended) = run(bytes, usize::MAX);
    for piece in [1, 10, 1_000] {
        let (_, told_in_pieces, out_in_pieces, ended_in_pieces) = run(bytes, piece);
        assert_eq!((&told_in_pieces, out_in_pieces, ended_in_pieces), (&told, out.clone(), ended), "pieces of {piece}");
    }
    if let Err(fatal) = ended {
        assert!(!fatal.text.is_empty(), "sent away without a reason");
        let (head, _) = frames(&out).pop().unwrap();
        assert_eq!(head[3], GOAWAY, "sent away without a word");
    }
    let mut more = Output::default();
    for stream in told.open {
        let mut data = Bytes::from_static(&[7; 100_000]);
        core.respond(stream, StatusCode::OK, &HeaderMap::new(), false, &mut more);
        let room = core.room(stream);
        core.send(stream, &mut data, &mut more);
        assert_eq!(data.len(), 100_000_usize.saturating_sub(room));
        core.end(stream, None, &mut more);
    }
    out.extend(more.take());
    make_sense(&out);
}

/// What was told, written, and how it ended.
fn run(bytes: &[u8], piece: usize) -> (Core, Told, Vec<u8>, Result<(), Fatal>) {
    let now = Instant::now();
    let config = Arc::new(Config { streams: 8, stream_window: 1 << 12, ..Config::default() });
    let (mut core, mut told, mut out) = (Core::new(config, now), Told::default(), Output::default());
    core.receive(GREETING, now, &mut out, &mut told).unwrap();
    for piece in bytes.chunks(piece) {
        if let Err(fatal) = core.receive(piece, now, &mut out, &mut told) {
            core.fail(fatal, &mut out);
            return (core, told, out.take(), Err(fatal));
        }
    }
    (core, told, out.take(), Ok(()))
}

fn frames(mut bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(HEAD);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (payload, rest) = rest.split_at(length);
        frames.push((head, payload));
        bytes = rest;
    }
    frames
}

fn make_sense(bytes: &[u8]) {
    let (mut ended, mut reset) = (Vec::new(), Vec::new());
    for (head, _) in frames(bytes) {
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        assert!(!reset.contains(&stream), "{head:?} after a reset");
        match head[3] {
            RST_STREAM => reset.push(stream),
            DATA | HEADERS => {
                assert!(!ended.contains(&stream), "{head:?} after the end");
                if head[4] & 1 != 0 {
                    ended.push(stream);
                }
            }
            _ => {}
        }
    }
}

// === impl Told ===

impl Receive for Told {
    fn request(&mut self, stream: u32, request: Request<()>, ends: bool) {
        self.all.push(format!("{stream}: {request:?}, {ends}"));
        self.open.push(stream);
        assert!(self.open.len() <= 8, "more requests than may be");
    }

    fn data(&mut self, stream: u32, bytes: &[u8]) -> bool {
        self.all.push(format!("{stream}: {bytes:?}"));
        assert!(self.open.contains(&stream), "data of a stream that is not open");
        self.unread += u32::try_from(bytes.len()).unwrap();
        assert!(self.unread <= 1 << 20, "more data than there is room for");
        true
    }

    fn end(&mut self, stream: u32, trailers: Option<HeaderMap>) {
        self.all.push(format!("{stream}: ends, {trailers:?}"));
    }

    fn reset(&mut self, stream: u32, reason: Reason) -> u32 {
        self.all.push(format!("{stream}: {reason:?}"));
        self.open.retain(|open| *open != stream);
        0
    }

    fn room(&mut self, stream: Option<u32>) {
        self.all.push(format!("{stream:?}: room"));
    }
}
