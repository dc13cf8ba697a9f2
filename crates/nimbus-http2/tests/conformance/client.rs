//! A client that sends what it is told, byte by byte.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::peer::Peer;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// The last ping of a test: its answer says that everything before it was dealt with.
pub(crate) const LAST: [u8; 8] = *b"the last";

/// A test that waits for longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A frame as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

/// A frame to be sent.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) fn settings(all: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = all
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

/// A header block of literals.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            let length = text.len();
            if length < 127 {
                block.push(length as u8);
            } else {
                block.push(127);
                let mut left = length - 127;
                while left >= 128 {
                    block.push((left % 128) as u8 | 128);
                    left /= 128;
                }
                block.push(left as u8);
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// The headers of a request.
pub(crate) fn request(path: &str) -> Vec<u8> {
    block(&[(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "test")])
}

/// A request that has no body.
pub(crate) fn ask(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &request(path))
}

/// The beginning of a request that has one.
pub(crate) fn begin(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &request(path))
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    /// One that has said hello.
    pub(crate) async fn open(peer: &Peer, with: &[(u16, u32)]) -> Self {
        let mut client = Self::connect(peer.address).await;
        client.send(&[PREFACE, &settings(with)].concat()).await;
        client
    }

    /// What cannot be sent because the server has had enough need not be.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        drop(soon("the server to read", self.stream.write_all(bytes)).await);
    }

    /// The next frame; `None` if the server has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        soon("a frame", async {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
            Some(Frame { kind: head[3], flags: head[4], stream, payload })
        })
        .await
    }

    /// Everything up to the answer to the last ping, which is sent now, or to the end.
    pub(crate) async fn all(&mut self) -> Vec<Frame> {
        self.send(&frame(PING, 0, 0, &LAST)).await;
        self.until(|frame| frame.kind == PING && frame.flags == ACK && frame.payload == LAST)
            .await
    }

    /// Everything up to such a frame, or to the end.
    pub(crate) async fn until(&mut self, is_last: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let found = is_last(&frame);
            frames.push(frame);
            if found {
                break;
            }
        }
        frames
    }

    /// Everything up to the end of a stream.
    pub(crate) async fn answer(&mut self, stream: u32) -> Vec<Frame> {
        self.until(|frame| frame.stream == stream && frame.is_end()).await
    }
}

// === impl Frame ===

impl Frame {
    pub(crate) fn is_end(&self) -> bool {
        match self.kind {
            DATA | HEADERS => self.flags & END_STREAM != 0,
            kind => kind == RST_STREAM,
        }
    }

    /// Why a stream or the connection ends.
    pub(crate) fn reason(&self) -> Option<u32> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap()))
    }
}

/// The data of a stream, put together.
pub(crate) fn data(frames: &[Frame], stream: u32) -> Vec<u8> {
    let of_stream = frames.iter().filter(|frame| frame.kind == DATA && frame.stream == stream);
    of_stream.flat_map(|frame| frame.payload.clone()).collect()
}
