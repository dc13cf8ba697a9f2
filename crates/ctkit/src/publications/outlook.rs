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
    /// So many children were new.
    fresh: usize,
}

/// So few owners say nothing of the others.
const TELLING: usize = 64;

// === impl Outlook ===

impl Outlook {
    /// So many owners are looked at in all, as far as is known; none, when that is over.
    pub(crate) fn expect(&mut self, owners: usize) {
        self.owners = owners;
    }

    /// An owner is looked at, and so many of its children are new.
    pub(crate) fn saw(&mut self, fresh: usize) {
        self.seen += 1;
        self.fresh += fresh;
    }

    /// Makes room in a table that is full for those who are to come, if they are like those who have come, and nobody has
    /// more than `each` entries in it.
    pub(crate) fn make_room<V>(&self, table: &mut KeyMap<V>, each: usize) {
        let to_come = self.owners.saturating_sub(self.seen);
        if self.seen >= TELLING && to_come > 0 && table.len() == table.capacity() {
            let entries = self.fresh.min(self.seen.saturating_mul(each));
            table.reserve(to_come.saturating_mul(entries) / self.seen);
        }
    }
}

#[cfg(test)]
mod tests;
