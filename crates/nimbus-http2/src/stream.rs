//! A stream, as far as frames are concerned.

use http::{HeaderMap, header};

use crate::credit::Credit;

/// A stream whose answer has not ended. One that was answered is gone.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What we may send. Settings can make it less than nothing.
    pub(crate) window: i32,
    pub(crate) credit: Credit,
    /// The request has ended.
    pub(crate) is_whole: bool,
    /// Bytes that are still missing of what the request says to have.
    missing: Option<u64>,
}

// === impl Stream ===

impl Stream {
    /// A request with these headers, which is whole if it `ends`. `None`: what they say of its length is wrong.
    pub(crate) fn new(window: i32, credit: u32, ends: bool, fields: &HeaderMap) -> Option<Self> {
        let mut lengths = fields.get_all(header::CONTENT_LENGTH).iter();
        let missing = match lengths.next() {
            Some(length) => Some(length.to_str().ok()?.parse().ok()?),
            None => None,
        };
        let mut stream = Self { window, credit: Credit::new(credit), is_whole: false, missing };
        (lengths.next().is_none() && (!ends || stream.end())).then_some(stream)
    }

    /// The peer has room for more. `None`: for more than there can be.
    pub(crate) fn widen(&mut self, more: i32) -> Option<()> {
        self.window = widened(self.window, more)?;
        Some(())
    }

    /// Bytes of the request have come. `false`: more than it said.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        match &mut self.missing {
            None => true,
            Some(missing) => match missing.checked_sub(bytes as u64) {
                Some(left) => {
                    *missing = left;
                    true
                }
                None => false,
            },
        }
    }

    /// The request ends. `false`: with less than it said.
    #[must_use]
    pub(crate) fn end(&mut self) -> bool {
        self.is_whole = true;
        self.missing.is_none_or(|missing| missing == 0)
    }
}

/// A window that grows, or shrinks. Windows end where these numbers do.
pub(crate) fn widened(window: i32, more: i32) -> Option<i32> {
    window.checked_add(more)
}
