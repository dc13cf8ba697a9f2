//! Bytes, as they come, cut into frames.

use std::borrow::Cow;

use crate::{
    frame::{FRAME_BYTES, HEAD, Head},
    reason::{Fatal, Reason},
};

/// What every connection begins with.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What came of a frame that is not complete. Takes no memory between frames.
#[derive(Debug, Default)]
pub(crate) struct Input {
    partial: Vec<u8>,
}

/// A frame as it came.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) head: Head,
    pub(crate) payload: Cow<'a, [u8]>,
}

// === impl Input ===

impl Input {
    /// The next frame: one that was begun before, or one in these bytes, from which it is taken.
    ///
    /// # Errors
    /// If it is longer than frames may be.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Whole<'a>>, Fatal> {
        if self.partial.is_empty() {
            if let Some(head) = head(bytes)?
                && let Some((frame, rest)) = bytes.split_at_checked(HEAD + head.length)
            {
                *bytes = rest;
                return Ok(Some(Whole { head, payload: Cow::Borrowed(&frame[HEAD..]) }));
            }
            // As small as it can be, since many may wait here.
            self.partial = bytes.to_vec();
            *bytes = &[];
            return Ok(None);
        }
        self.fill(bytes, HEAD);
        let Some(head) = head(&self.partial)? else { return Ok(None) };
        self.fill(bytes, HEAD + head.length);
        if self.partial.len() < HEAD + head.length {
            return Ok(None);
        }
        let mut frame = std::mem::take(&mut self.partial);
        frame.drain(..HEAD);
        Ok(Some(Whole { head, payload: Cow::Owned(frame) }))
    }

    fn fill(&mut self, bytes: &mut &[u8], to: usize) {
        let missing = to.saturating_sub(self.partial.len());
        let (now, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(now);
        *bytes = rest;
    }
}

fn head(bytes: &[u8]) -> Result<Option<Head>, Fatal> {
    let Some(head) = bytes.first_chunk() else { return Ok(None) };
    let head = Head::read(head);
    if head.length > FRAME_BYTES {
        return Err(Reason::FRAME_SIZE_ERROR.fatal("a frame is larger than the settings allow"));
    }
    Ok(Some(head))
}
