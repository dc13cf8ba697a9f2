//! The dynamic table: what the peer has said before and may name by a number.

use std::collections::VecDeque;

/// The dynamic table. Takes no memory until something is put into it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The newest first.
    entries: VecDeque<Entry>,
    size: usize,
}

/// A name with a value behind it.
#[derive(Debug)]
struct Entry {
    bytes: Box<[u8]>,
    name: usize,
}

/// What an entry counts beside its bytes (section 4.1).
pub(crate) const OVERHEAD: usize = 32;

// === impl Table ===

impl Table {
    /// The entry of that number; the newest is 0.
    pub(crate) fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(at).map(|entry| entry.bytes.split_at(entry.name))
    }

    /// Puts an entry in front. The oldest go until it fits; what is larger than the table empties it.
    pub(crate) fn insert(&mut self, name: &[u8], value: &[u8], capacity: usize) {
        let bytes = [name, value].concat().into_boxed_slice();
        let size = bytes.len() + OVERHEAD;
        self.shrink(capacity.saturating_sub(size));
        if size <= capacity {
            self.entries.push_front(Entry { bytes, name: name.len() });
            self.size += size;
        }
    }

    /// Drops the oldest until no more than `capacity` is left.
    pub(crate) fn shrink(&mut self, capacity: usize) {
        while self.size > capacity
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.bytes.len() + OVERHEAD;
        }
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
        }
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}
