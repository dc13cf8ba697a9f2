//! How many rows each table has, and the digest of them all.

use nimbus_core::Digest;

use crate::durable::table::Table;

/// How many rows each table has, and the digest of them all: a row that is missing, or that is there twice, shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ledger([Total; Table::ALL.len()]);

/// The rows of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Total {
    pub(crate) rows: u64,
    pub(crate) digest: Digest,
}

// === impl Ledger ===

impl Ledger {
    pub(crate) fn total(&self, table: Table) -> Total {
        self.0[table as usize]
    }

    pub(crate) fn total_mut(&mut self, table: Table) -> &mut Total {
        &mut self.0[table as usize]
    }
}

// === impl Total ===

impl Total {
    pub(crate) fn add(&mut self, checksum: Digest) {
        self.rows += 1;
        self.digest.toggle(checksum);
    }

    pub(crate) fn remove(&mut self, checksum: Digest) {
        self.rows = self.rows.saturating_sub(1);
        self.digest.toggle(checksum);
    }
}
