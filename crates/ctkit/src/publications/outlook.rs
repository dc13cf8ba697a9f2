//! How much is still to come.

use nimbus_core::KeyMap;

/// How much is still to come, as far as that is known: tables grow once for all of it, and not again and again. To move a
/// table is the more work the more is in it, and everybody waits meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outlook {
    /// So many owners are looked at in all.
    owners: usize,
    /// So many of them have been.
    seen: usize,
}

// === impl Outlook ===

impl Outlook {
    /// So many owners are looked at in all, as far as is known.
    pub(crate) fn expect(&mut self, owners: usize) {
        self.owners = owners;
    }

    /// An owner is looked at.
    pub(crate) fn saw(&mut self) {
        self.seen += 1;
    }

    /// Makes room in a table that is full for those who are to come, if they are like those who have come.
    pub(crate) fn make_room<V>(&self, table: &mut KeyMap<V>) {
        let (entries, to_come) = (table.len(), self.owners.saturating_sub(self.seen));
        if entries > 0 && entries == table.capacity() {
            // What was there before says nothing of how much an owner has.
            table.reserve(to_come.saturating_mul(entries) / entries.max(self.seen));
        }
    }
}

#[cfg(test)]
mod tests;
