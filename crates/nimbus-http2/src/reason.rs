//! Why a stream or a connection ends: the error codes of RFC 9113, section 7.

use std::fmt;

/// Why a stream or a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(pub u32);

/// A connection that cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason:?}: {text}")]
#[non_exhaustive]
pub struct Fatal {
    /// What the peer is told.
    pub reason: Reason,
    /// What it has done.
    pub text: &'static str,
}

const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

// === impl Reason ===

impl Reason {
    /// Nothing went wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The peer has broken a rule that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Something went wrong that the peer cannot help.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than there was room for.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A stream was used that had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has a size that it must not have.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// Nothing was done about the stream: it may be tried again.
    pub const REFUSED_STREAM: Self = Self(7);
    /// Nobody wants the stream any more.
    pub const CANCEL: Self = Self(8);
    /// A header block cannot be read, and so none after it.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer makes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    pub(crate) fn fatal(self, text: &'static str) -> Fatal {
        Fatal { reason: self, text }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
