//! Reads along what a bus sends: how many events there are on a connection, not how many somebody found worth telling.

use nimbus_wire::v1::{self, Mode, frame::Frame};
use prost::Message as _;

/// Reads along on one connection, from its first byte. No I/O: bytes go in, counts come out.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// The head of an HTTP/2 frame, as far as it has come.
    head: Vec<u8>,
    /// Bytes of the frame that have not come yet.
    left: usize,
    /// The frame is data of the subscription.
    wanted: bool,
    /// Messages of the subscription, as far as they have come.
    messages: Vec<u8>,
}

/// What was on a connection, or on many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Traffic {
    /// Everything, with all that HTTP/2 and gRPC add.
    pub(crate) bytes: u64,
    /// Objects put or removed.
    pub(crate) events: u64,
    /// Subscriptions that went on where they were.
    pub(crate) resumed: u64,
    /// Subscriptions that were answered in any other way.
    pub(crate) restarted: u64,
}

/// Length, type, flags and stream.
const HEAD: usize = 9;

/// Frames of this type carry messages. The bus does not pad them.
const DATA: u8 = 0;

/// An agent opens a connection for its subscription, so that is the first stream; reports come later.
const SUBSCRIPTION: u32 = 1;

/// Whether it is compressed, and how long it is.
const PREFIX: usize = 5;

// === impl Tap ===

impl Tap {
    /// Reads what has come, and says what was in it.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Traffic {
        let mut traffic = Traffic { bytes: bytes.len() as u64, ..Traffic::default() };
        while !bytes.is_empty() {
            if self.left == 0 {
                let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
                self.head.extend_from_slice(head);
                bytes = rest;
                self.begin_frame();
                continue;
            }
            let (part, rest) = bytes.split_at(bytes.len().min(self.left));
            if self.wanted {
                self.messages.extend_from_slice(part);
            }
            self.left -= part.len();
            bytes = rest;
        }
        while let Some(message) = self.next_message() {
            traffic += in_message(&message);
        }
        traffic
    }

    /// Looks at the head of a frame, if all of it is there.
    fn begin_frame(&mut self) {
        if let Ok([a, b, c, kind, _, stream @ ..]) = <[u8; HEAD]>::try_from(&self.head[..]) {
            self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            self.wanted = kind == DATA && u32::from_be_bytes(stream) == SUBSCRIPTION;
            self.head.clear();
        }
    }

    fn next_message(&mut self) -> Option<Vec<u8>> {
        let length = self.messages.get(1..PREFIX)?;
        let end = PREFIX + u32::from_be_bytes(length.try_into().ok()?) as usize;
        if self.messages.len() < end {
            return None;
        }
        let rest = self.messages.split_off(end);
        Some(std::mem::replace(&mut self.messages, rest).split_off(PREFIX))
    }
}

/// What cannot be read counts as an event: nothing may pass unseen.
fn in_message(message: &[u8]) -> Traffic {
    let Ok(frame) = v1::Frame::decode(message) else { return Traffic { events: 1, ..Traffic::default() } };
    match frame.frame {
        Some(Frame::Batch(batch)) => Traffic { events: batch.events.len() as u64, ..Traffic::default() },
        Some(Frame::Welcome(welcome)) if welcome.mode() == Mode::Delta => Traffic { resumed: 1, ..Traffic::default() },
        Some(Frame::Welcome(_)) => Traffic { restarted: 1, ..Traffic::default() },
        _ => Traffic::default(),
    }
}

// === impl Traffic ===

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.events += more.events;
        self.resumed += more.resumed;
        self.restarted += more.restarted;
    }
}

impl std::ops::Sub for Traffic {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            events: self.events - before.events,
            resumed: self.resumed - before.resumed,
            restarted: self.restarted - before.restarted,
        }
    }
}

#[cfg(test)]
mod tests;
