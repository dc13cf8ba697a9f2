//! Frames as they travel: RFC 9113, section 4.1.

use crate::{output::Output, reason::Reason};

/// What begins every frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

/// Kinds of frames.
pub(crate) mod kind {
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
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Names of settings.
pub(crate) mod setting {
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Bytes of a head.
pub(crate) const HEAD: usize = 9;

/// What everybody takes, and all that we take.
pub(crate) const FRAME_BYTES: usize = 16_384;

/// What nobody may offer to take more than.
pub(crate) const MAX_FRAME_BYTES: usize = (1 << 24) - 1;

/// Window sizes end here.
pub(crate) const MAX_WINDOW: i32 = i32::MAX;

/// The window that everything begins with.
pub(crate) const WINDOW: i32 = 65_535;

// === impl Head ===

impl Head {
    pub(crate) fn read(bytes: &[u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        Self { length, kind, flags, stream: u32::from_be_bytes(stream) & !(1 << 31) }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn to_bytes(self) -> [u8; HEAD] {
        let length = u32::try_from(self.length).expect("frames are cut to what the peer takes").to_be_bytes();
        let stream = self.stream.to_be_bytes();
        [length[1], length[2], length[3], self.kind, self.flags, stream[0], stream[1], stream[2], stream[3]]
    }
}

/// Writes a frame of few bytes.
pub(crate) fn write(out: &mut Output, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.own(&Head { length: payload.len(), kind, flags, stream }.to_bytes());
    out.own(payload);
}

pub(crate) fn write_reset(out: &mut Output, stream: u32, reason: Reason) {
    write(out, kind::RST_STREAM, 0, stream, &reason.0.to_be_bytes());
}

pub(crate) fn write_window(out: &mut Output, stream: u32, more: u32) {
    write(out, kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
}

pub(crate) fn write_goaway(out: &mut Output, last: u32, reason: Reason, text: &str) {
    let payload = [&last.to_be_bytes(), &reason.0.to_be_bytes(), text.as_bytes()].concat();
    write(out, kind::GOAWAY, 0, 0, &payload);
}

pub(crate) fn write_settings(out: &mut Output, settings: &[(u16, u32)]) {
    let bytes: Vec<u8> = settings
        .iter()
        .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()))
        .collect();
    write(out, kind::SETTINGS, 0, 0, &bytes);
}

/// Writes a header block, in as many frames as the peer needs it in.
pub(crate) fn write_block(out: &mut Output, stream: u32, block: &[u8], ends: bool, most: usize) {
    let mut parts = block.chunks(most).peekable();
    let mut kind = kind::HEADERS;
    let mut flags = if ends { flag::END_STREAM } else { 0 };
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        write(out, kind, flags, stream, part);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}
