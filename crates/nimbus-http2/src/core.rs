//! A connection, without what it runs on: bytes come in, and what is to be written and to be done comes out.

mod blocks;
mod closing;
mod frames;
mod requests;
mod sending;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc};

use http::{HeaderMap, Request};
use tokio::time::Instant;

use crate::{
    bucket::Bucket,
    config::Config,
    credit::Credit,
    frame::{self, FRAME_BYTES, WINDOW, setting},
    hpack::Decoder,
    input::{Input, PREFACE, Whole},
    output::Output,
    reason::{Fatal, Reason},
    stream::Stream,
    streams::Streams,
};

use self::{blocks::Block, closing::Going};

/// A connection: a plain struct, to which time is passed in. All its methods put what is to be written into an [`Output`].
#[derive(Debug)]
pub struct Core {
    config: Arc<Config>,
    opening: Opening,
    input: Input,
    decoder: Decoder,
    /// A header block that has not ended: nothing else may come before its end.
    block: Option<Box<Block>>,
    streams: Streams<Stream>,
    /// The highest stream that the peer has used.
    last: u32,
    /// What the peer takes.
    peer: Peer,
    /// What we may send on all streams together.
    window: i32,
    credit: Credit,
    /// Streams that we ended before the peer has: what it sends on them may be on its way.
    reset: VecDeque<u32>,
    /// The last streams that ended in peace.
    ended: [u32; 4],
    /// Streams that the peer may give up, or that we refuse: each made us work for nothing.
    failures: Bucket,
    /// Frames that lead nowhere.
    chatter: Bucket,
    going: Going,
    /// The peer opens no more streams.
    is_leaving: bool,
}

/// What a peer does, for whoever serves it.
pub trait Receive {
    /// A request has begun; nothing more of it comes if it `ends`.
    fn request(&mut self, stream: u32, request: Request<()>, ends: bool);

    /// More of a request. `false`: nobody wants it.
    fn data(&mut self, stream: u32, bytes: &[u8]) -> bool;

    /// A request is complete.
    fn end(&mut self, stream: u32, trailers: Option<HeaderMap>);

    /// A stream is over. Returns how many bytes of its request nobody has read.
    fn reset(&mut self, stream: u32, reason: Reason) -> u32;

    /// There is room to send more on one stream, or on any of them.
    fn room(&mut self, stream: Option<u32>);
}

/// What goes with all that is received.
pub(crate) struct Turn<'a, R> {
    pub(crate) now: Instant,
    pub(crate) out: &'a mut Output,
    pub(crate) to: &'a mut R,
}

/// How far the greeting has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// Its settings must come first.
    Settings,
    Open,
}

#[derive(Debug)]
struct Peer {
    /// The window that streams begin with.
    window: i32,
    frame_bytes: usize,
}

/// Tables of the peer are as large as RFC 7541 has them: our agents' fields need a few hundred bytes.
const TABLE_BYTES: usize = 4_096;

/// Nobody who means well talks about nothing more often than this, in a second.
const CHATTER: u32 = 10_000;

/// Frames of streams that we ended may be on their way for as many streams.
const REMEMBERED: usize = 1_024;

// === impl Core ===

impl Core {
    /// A connection on which nothing was said yet.
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        let failures = config.streams.max(64);
        Self {
            opening: Opening::Preface(0),
            input: Input::default(),
            decoder: Decoder::new(TABLE_BYTES),
            block: None,
            streams: Streams::default(),
            last: 0,
            peer: Peer { window: WINDOW, frame_bytes: FRAME_BYTES },
            window: WINDOW,
            credit: Credit::new(config.connection_window),
            reset: VecDeque::new(),
            ended: [0; 4],
            failures: Bucket::new(failures, failures / 8, now),
            chatter: Bucket::new(CHATTER, CHATTER, now),
            going: Going::On,
            is_leaving: false,
            config,
        }
    }

    /// Takes what the peer has sent.
    ///
    /// # Errors
    /// If the connection cannot go on: [`Core::fail`] tells the peer why.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        now: Instant,
        out: &mut Output,
        to: &mut impl Receive,
    ) -> Result<(), Fatal> {
        if let Opening::Preface(seen) = self.opening {
            let (now, rest) = bytes.split_at(bytes.len().min(PREFACE.len() - seen));
            let seen = seen + now.len();
            if !PREFACE[..seen].ends_with(now) {
                if seen > now.len() || now.first().is_some_and(u8::is_ascii_uppercase) {
                    out.own(NOT_HTTP_2.as_bytes());
                }
                return Err(Reason::PROTOCOL_ERROR.fatal("the connection does not begin as HTTP/2 does"));
            }
            self.opening = Opening::Preface(seen);
            if seen < PREFACE.len() {
                return Ok(());
            }
            self.greet(out);
            bytes = rest;
        }
        let mut turn = Turn { now, out, to };
        while let Some(Whole { head, payload }) = self.input.next(&mut bytes)? {
            self.frame(head, &payload, &mut turn)?;
        }
        Ok(())
    }

    /// Whether the peer has said hello.
    pub fn is_open(&self) -> bool {
        self.opening == Opening::Open
    }

    /// Asks whether the peer is there. It answers, whatever that is.
    pub fn ping(&mut self, out: &mut Output) {
        frame::write(out, frame::kind::PING, 0, 0, &[0; 8]);
    }

    fn greet(&mut self, out: &mut Output) {
        self.opening = Opening::Settings;
        let config = &self.config;
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, config.streams),
            (setting::INITIAL_WINDOW_SIZE, config.stream_window),
            (setting::MAX_HEADER_LIST_SIZE, u32::try_from(config.header_bytes).unwrap_or(u32::MAX)),
        ];
        frame::write_settings(out, &settings);
        let more = config.connection_window.saturating_sub(WINDOW.unsigned_abs());
        if more > 0 {
            frame::write_window(out, 0, more);
        }
    }
}

/// For who came with a browser.
const NOT_HTTP_2: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 54\r\n\
    connection: close\r\n\r\nThis is gRPC, which takes HTTP/2 from the first byte.\n";
