//! Counts fields of protobuf messages that arrive in pieces.

use anyhow::{Context as _, bail};

use crate::protocol::Heard;

/// Which fields of a message are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// The field whose content is looked at instead of the message, if it comes.
    pub(crate) enter: Option<u64>,
    /// Each of these is an event.
    pub(crate) event: u64,
    /// With one of these, outside of the entered field, the subscriber has everything that there was.
    pub(crate) ready: &'static [u64],
}

/// Counts the fields of one message after the other.
#[derive(Debug)]
pub(crate) struct Fields {
    counted: Counted,
    entered: bool,
    state: State,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum State {
    Tag(Varint),
    Length { field: u64, length: Varint },
    Number,
    Skip(u64),
}

/// A number of which some bytes have come.
#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    shift: u32,
}

// === impl Fields ===

impl Fields {
    pub(crate) fn new(counted: Counted) -> Self {
        Self { counted, entered: false, state: State::Tag(Varint::default()) }
    }

    /// Another message begins.
    pub(crate) fn restart(&mut self) {
        (self.entered, self.state) = (false, State::Tag(Varint::default()));
    }

    pub(crate) fn take(&mut self, mut bytes: &[u8], heard: &mut Heard) -> anyhow::Result<()> {
        while let Some((&first, rest)) = bytes.split_first() {
            self.state = match self.state {
                State::Skip(left) => {
                    let now = usize::try_from(left)?.min(bytes.len());
                    bytes = &bytes[now..];
                    self.state = if left == now as u64 { State::default() } else { State::Skip(left - now as u64) };
                    continue;
                }
                State::Tag(mut tag) => match tag.push(first)? {
                    false => State::Tag(tag),
                    true => self.begin(tag.value, heard)?,
                },
                State::Number if first & 0x80 != 0 => State::Number,
                State::Number => State::default(),
                State::Length { field, mut length } => match length.push(first)? {
                    false => State::Length { field, length },
                    true if !self.entered && Some(field) == self.counted.enter => {
                        self.entered = true;
                        State::default()
                    }
                    true if length.value == 0 => State::default(),
                    true => State::Skip(length.value),
                },
            };
            bytes = rest;
        }
        Ok(())
    }

    /// A field begins.
    fn begin(&self, tag: u64, heard: &mut Heard) -> anyhow::Result<State> {
        let (field, kind) = (tag >> 3, tag & 7);
        let inside = self.entered || self.counted.enter.is_none();
        heard.events += u64::from(inside && field == self.counted.event);
        heard.ready |= !self.entered && self.counted.ready.contains(&field);
        Ok(match kind {
            0 => State::Number,
            1 => State::Skip(8),
            2 => State::Length { field, length: Varint::default() },
            5 => State::Skip(4),
            _ => bail!("a message has a field of the unknown wire type {kind}"),
        })
    }
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        Self::Tag(Varint::default())
    }
}

// === impl Varint ===

impl Varint {
    /// Adds a byte; true if it was the last.
    fn push(&mut self, byte: u8) -> anyhow::Result<bool> {
        let bits = u64::from(byte & 0x7f)
            .checked_shl(self.shift)
            .context("a number in a message is too long")?;
        self.value |= bits;
        self.shift += 7;
        Ok(byte & 0x80 == 0)
    }
}

#[cfg(test)]
mod tests;
