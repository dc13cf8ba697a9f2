//! The end of what a command prints.

use std::{collections::VecDeque, fmt};

/// The end of what a command prints, which is where the error is. However much it prints, no more is kept.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    is_cut: bool,
}

/// A message is kept up to a kilobyte on the bus; there must be room for what is said around it.
const KEPT: usize = 800;

// === impl Tail ===

impl Tail {
    /// Takes the next part.
    pub(crate) fn push(&mut self, part: &[u8]) {
        self.bytes.extend(&part[part.len().saturating_sub(KEPT)..]);
        let excess = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..excess);
        self.is_cut |= excess > 0 || part.len() > KEPT;
    }
}

/// One line, without control characters, that begins with `…` if something is missing.
impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        // A character that was cut in the middle is left out.
        let start = if self.is_cut { bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count() } else { 0 };
        let text = String::from_utf8_lossy(&bytes[start..]);
        let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{}{text}", if self.is_cut { "…" } else { "" })
    }
}
