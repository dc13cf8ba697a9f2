//! HTTP/2 by hand, since no library sends what must not be sent.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

use prost::Message;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::hostile::attackers::Counts;

/// What every connection begins with.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub(crate) mod sort {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) const ACK: u8 = 1;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// What a setting is called.
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) sort: u8,
    pub(crate) stream: u32,
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) reading: OwnedReadHalf,
    pub(crate) writing: Writing,
}

/// What is sent on a connection, and counted.
pub(crate) struct Writing {
    half: OwnedWriteHalf,
    counts: Arc<Counts>,
}

/// A frame, whatever is in it.
pub(crate) fn frame(sort: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is smaller than its own length can say");
    let mut frame = Vec::with_capacity(9 + payload.len());
    frame.extend_from_slice(&length.to_be_bytes()[1..]);
    frame.extend_from_slice(&[sort, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Settings, each an identifier and a value.
pub(crate) fn settings(all: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = all
        .iter()
        .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
        .collect();
    frame(sort::SETTINGS, 0, 0, &payload)
}

/// Headers as a block: literals that are neither indexed nor compressed.
pub(crate) fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// The headers of a call.
pub(crate) fn call(path: &str) -> Vec<u8> {
    block(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "bus"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ])
}

/// A call with its one message, on a stream of its own.
pub(crate) fn unary(stream: u32, path: &str, message: &impl Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let prefix = u32::try_from(body.len()).expect("messages are small").to_be_bytes();
    let body = [&[0][..], &prefix, &body].concat();
    [frame(sort::HEADERS, END_HEADERS, stream, &call(path)), frame(sort::DATA, END_STREAM, stream, &body)].concat()
}

/// A number with a prefix of seven bits, as HPACK has it.
fn length(block: &mut Vec<u8>, mut value: usize) {
    if value < 127 {
        block.push(value as u8);
        return;
    }
    block.push(127);
    value -= 127;
    while value >= 128 {
        block.push((value % 128) as u8 | 128);
        value /= 128;
    }
    block.push(value as u8);
}

// === impl Wire ===

impl Wire {
    pub(crate) async fn connect(address: SocketAddr, counts: Arc<Counts>) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (reading, half) = stream.into_split();
        Ok(Self { reading, writing: Writing { half, counts } })
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.writing.write(bytes).await
    }

    /// Reads until the bus ends it.
    pub(crate) async fn until_closed(&mut self) {
        let mut bytes = [0; 4096];
        while matches!(self.reading.read(&mut bytes).await, Ok(read) if read > 0) {}
    }
}

// === impl Writing ===

impl Writing {
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.half.write_all(bytes).await?;
        self.counts.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// The next frame, with its payload.
pub(crate) async fn next_frame(reading: &mut OwnedReadHalf) -> std::io::Result<(Head, Vec<u8>)> {
    let mut head = [0; 9];
    reading.read_exact(&mut head).await?;
    let number = |bytes: &[u8]| bytes.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    let length = number(&head[..3]) as usize;
    let mut payload = vec![0; length];
    reading.read_exact(&mut payload).await?;
    Ok((Head { length, sort: head[3], stream: number(&head[5..]) & 0x7fff_ffff }, payload))
}
