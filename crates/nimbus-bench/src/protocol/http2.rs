//! One gRPC call on one HTTP/2 connection, from the client's side.

use anyhow::{bail, ensure};

use crate::protocol::{
    Heard,
    fields::{Counted, Fields},
};

/// What a client tells the server in the beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) max_frame: u32,
    pub(crate) window: u32,
}

/// A call whose answer is a stream of messages.
#[derive(Debug)]
pub(crate) struct Grpc {
    fields: Fields,
    window: u32,
    /// Bytes that came since the windows were last enlarged.
    unacknowledged: u32,
    frame: Frame,
    /// The prefix of a message of which some bytes have come.
    prefix: Gathered<5>,
    /// Of the message, so many bytes are still to come.
    message: usize,
}

/// The frame that is being read.
#[derive(Debug, Default)]
struct Frame {
    header: Gathered<9>,
    left: usize,
    kind: u8,
    flags: u8,
    /// The content of a frame that must be sent back.
    ping: Vec<u8>,
}

/// A few bytes that may come one by one.
#[derive(Debug)]
struct Gathered<const N: usize> {
    bytes: [u8; N],
    filled: usize,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

/// The windows and frames that HTTP/2 begins with.
const DEFAULT_WINDOW: u32 = 65_535;
const DEFAULT_FRAME: u32 = 16_384;

/// The only stream.
const STREAM: u32 = 1;

// === impl Settings ===

impl Settings {
    /// Those of our own agents.
    pub(crate) const AGENT: Self = Self { max_frame: 1 << 20, window: 256 << 10 };

    /// Those of a client that sets nothing.
    pub(crate) const DEFAULT: Self = Self { max_frame: DEFAULT_FRAME, window: DEFAULT_WINDOW };

    /// Those of a client that never lets the server wait, and else sets nothing.
    pub(crate) const WIDE: Self = Self { max_frame: DEFAULT_FRAME, window: 1 << 24 };
}

// === impl Grpc ===

impl Grpc {
    /// A call, and the bytes to begin it with. The request is complete with its one message, unless it is `open`.
    pub(crate) fn call(
        settings: Settings,
        counted: Counted,
        path: &str,
        request: &[u8],
        open: bool,
    ) -> anyhow::Result<(Self, Vec<u8>)> {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let mut content = Vec::new();
        // The limits of frames and of the window of each stream, and that nothing is to be pushed.
        for (id, value) in [(5_u16, settings.max_frame), (4, settings.window), (2, 0)] {
            content.extend_from_slice(&id.to_be_bytes());
            content.extend_from_slice(&value.to_be_bytes());
        }
        frame(&mut bytes, SETTINGS, 0, 0, &content)?;
        if settings.window > DEFAULT_WINDOW {
            enlarge(&mut bytes, 0, settings.window - DEFAULT_WINDOW)?;
        }
        frame(&mut bytes, HEADERS, END_HEADERS, STREAM, &headers(path)?)?;
        let mut message = vec![0];
        message.extend_from_slice(&u32::try_from(request.len())?.to_be_bytes());
        message.extend_from_slice(request);
        ensure!(message.len() <= DEFAULT_FRAME as usize, "a request of {} bytes is too long here", message.len());
        frame(&mut bytes, DATA, if open { 0 } else { END_STREAM }, STREAM, &message)?;
        let call = Self {
            fields: Fields::new(counted),
            window: settings.window,
            unacknowledged: 0,
            frame: Frame::default(),
            prefix: Gathered::default(),
            message: 0,
        };
        Ok((call, bytes))
    }

    pub(crate) fn take(&mut self, mut bytes: &[u8], answer: &mut Vec<u8>) -> anyhow::Result<Heard> {
        let mut heard = Heard::default();
        while !bytes.is_empty() {
            if self.frame.header.filled < 9 {
                bytes = self.frame.header.fill(bytes);
                if self.frame.header.filled == 9 {
                    self.begin()?;
                }
                if self.frame.header.filled < 9 || self.frame.left > 0 {
                    continue;
                }
            }
            let now = self.frame.left.min(bytes.len());
            let (content, rest) = bytes.split_at(now);
            bytes = rest;
            self.frame.left -= now;
            match self.frame.kind {
                DATA => self.data(content, &mut heard)?,
                PING => self.frame.ping.extend_from_slice(content),
                _ => {}
            }
            if self.frame.left == 0 {
                self.end(answer)?;
                self.frame.header.filled = 0;
            }
        }
        self.acknowledge(answer)?;
        Ok(heard)
    }

    /// The header of a frame is there.
    fn begin(&mut self) -> anyhow::Result<()> {
        let Frame { header, left, kind, flags, ping } = &mut self.frame;
        let [high, middle, low, of, with, ..] = header.bytes;
        *left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        (*kind, *flags) = (of, with);
        ping.clear();
        match of {
            DATA => {
                ensure!(with & PADDED == 0, "a frame is padded, which nobody does here");
                self.unacknowledged += u32::try_from(*left)?;
            }
            HEADERS if with & END_STREAM != 0 => bail!("the server ended the call"),
            RST_STREAM => bail!("the server reset the call"),
            GOAWAY => bail!("the server closes the connection"),
            _ => {}
        }
        Ok(())
    }

    /// All of a frame is there.
    fn end(&mut self, answer: &mut Vec<u8>) -> anyhow::Result<()> {
        let Frame { kind, flags, ping, .. } = &self.frame;
        match *kind {
            SETTINGS if flags & ACK == 0 => frame(answer, SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => frame(answer, PING, ACK, 0, ping),
            DATA if flags & END_STREAM != 0 => bail!("the server ended the call"),
            _ => Ok(()),
        }
    }

    fn data(&mut self, mut bytes: &[u8], heard: &mut Heard) -> anyhow::Result<()> {
        while !bytes.is_empty() {
            if self.message == 0 {
                bytes = self.prefix.fill(bytes);
                if self.prefix.filled == 5 {
                    let [compressed, length @ ..] = self.prefix.bytes;
                    ensure!(compressed == 0, "a message is compressed, which nobody asked for");
                    self.message = u32::from_be_bytes(length) as usize;
                    self.prefix.filled = 0;
                    self.fields.restart();
                }
                continue;
            }
            let (content, rest) = bytes.split_at(self.message.min(bytes.len()));
            self.fields.take(content, heard)?;
            self.message -= content.len();
            bytes = rest;
        }
        Ok(())
    }

    /// Enlarges the windows when half of them is used, as most clients do.
    fn acknowledge(&mut self, answer: &mut Vec<u8>) -> anyhow::Result<()> {
        if self.unacknowledged < self.window / 2 {
            return Ok(());
        }
        enlarge(answer, 0, self.unacknowledged)?;
        enlarge(answer, STREAM, self.unacknowledged)?;
        self.unacknowledged = 0;
        Ok(())
    }
}

// === impl Gathered ===

impl<const N: usize> Gathered<N> {
    /// Takes what is missing, and returns the rest.
    fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (missing, rest) = bytes.split_at((N - self.filled).min(bytes.len()));
        self.bytes[self.filled..self.filled + missing.len()].copy_from_slice(missing);
        self.filled += missing.len();
        rest
    }
}

impl<const N: usize> Default for Gathered<N> {
    fn default() -> Self {
        Self { bytes: [0; N], filled: 0 }
    }
}

fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, content: &[u8]) -> anyhow::Result<()> {
    let length = u32::try_from(content.len())?.to_be_bytes();
    bytes.extend_from_slice(&length[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(content);
    Ok(())
}

fn enlarge(bytes: &mut Vec<u8>, stream: u32, by: u32) -> anyhow::Result<()> {
    frame(bytes, WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

/// The headers of a call, as HPACK writes them when nothing is to be remembered.
fn headers(path: &str) -> anyhow::Result<Vec<u8>> {
    // POST and http, by their numbers in the static table.
    let mut block = vec![0x83, 0x86];
    // Names by their numbers, or 0 and the name.
    let fields: [(&[u8], Option<&str>, &str); 4] = [
        (&[0x04], None, path),
        (&[0x01], None, "bench"),
        (&[0x0f, 0x10], None, "application/grpc"),
        (&[0x00], Some("te"), "trailers"),
    ];
    for (start, name, value) in fields {
        block.extend_from_slice(start);
        for text in name.into_iter().chain([value]) {
            ensure!(text.len() < 127, "{text:?} is too long for a header here");
            block.push(u8::try_from(text.len())?);
            block.extend_from_slice(text.as_bytes());
        }
    }
    Ok(block)
}

#[cfg(test)]
mod tests;
