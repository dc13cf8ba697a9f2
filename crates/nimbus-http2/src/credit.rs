//! What the peer may still send, and what of it is to be given back.

/// A window for what the peer sends.
#[derive(Debug)]
pub(crate) struct Credit {
    /// What the peer may still send.
    left: u32,
    /// What was used up and has not been given back.
    owed: u32,
}

// === impl Credit ===

impl Credit {
    pub(crate) fn new(window: u32) -> Self {
        Self { left: window, owed: 0 }
    }

    /// The peer has sent so much. `false`: it may not.
    #[must_use]
    pub(crate) fn spend(&mut self, bytes: u32) -> bool {
        let is_enough = bytes <= self.left;
        self.left = self.left.saturating_sub(bytes);
        is_enough
    }

    /// So much was used up. Returns what to tell the peer, once that is worth a frame.
    pub(crate) fn give_back(&mut self, bytes: u32, window: u32) -> Option<u32> {
        self.owed += bytes;
        if self.owed < window / 2 {
            return None;
        }
        let more = std::mem::take(&mut self.owed);
        self.left += more;
        (more > 0).then_some(more)
    }
}
