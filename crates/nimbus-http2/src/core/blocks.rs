//! Header blocks, in one frame or in several.

use crate::{
    core::{Core, Receive, Turn},
    frame::{Head, flag},
    reason::{Fatal, Reason},
};

/// A header block that has not ended.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) stream: u32,
    bytes: Vec<u8>,
    frames: usize,
    /// The request has no body.
    ends: bool,
}

/// A block is rarely longer than what it says; what is too large is read up to this, to be answered in words.
const BLOCK_FACTOR: usize = 4;

/// Frames that one block may come in, of which each may be empty.
const BLOCK_FRAMES: usize = 64;

const SHORT: Fatal = Fatal { reason: Reason::FRAME_SIZE_ERROR, text: "a frame is shorter than what it must have" };

// === impl Core ===

impl Core {
    pub(crate) fn on_headers(
        &mut self,
        head: Head,
        payload: &[u8],
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        if head.stream == 0 {
            return Err(Reason::PROTOCOL_ERROR.fatal("headers belong to a stream"));
        }
        let mut fragment = unpadded(head, payload)?;
        if head.has(flag::PRIORITY) {
            // What it says is not used any more.
            (_, fragment) = fragment.split_at_checked(5).ok_or(SHORT)?;
        }
        let ends = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.on_block(head.stream, fragment, ends, turn);
        }
        self.block = Some(Box::new(Block { stream: head.stream, bytes: fragment.to_vec(), frames: 1, ends }));
        Ok(())
    }

    pub(crate) fn on_continuation(
        &mut self,
        head: Head,
        payload: &[u8],
        turn: &mut Turn<'_, impl Receive>,
    ) -> Result<(), Fatal> {
        let Some(mut block) = self.block.take() else {
            return Err(Reason::PROTOCOL_ERROR.fatal("there are no headers to continue"));
        };
        block.frames += 1;
        if block.bytes.len() + payload.len() > BLOCK_FACTOR * self.config.header_bytes || block.frames > BLOCK_FRAMES {
            return Err(Reason::ENHANCE_YOUR_CALM.fatal("headers do not end"));
        }
        block.bytes.extend_from_slice(payload);
        if head.has(flag::END_HEADERS) {
            return self.on_block(block.stream, &block.bytes, block.ends, turn);
        }
        self.block = Some(block);
        Ok(())
    }
}

/// What is in a frame that may be padded.
pub(crate) fn unpadded(head: Head, payload: &[u8]) -> Result<&[u8], Fatal> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(SHORT)?;
    let length = rest.len().checked_sub(usize::from(padding));
    let length = length.ok_or(Reason::PROTOCOL_ERROR.fatal("there is more padding than frame"))?;
    Ok(&rest[..length])
}
