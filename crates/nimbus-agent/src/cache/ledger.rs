//! The checksums of all rows on disk.

use std::collections::BTreeMap;

use nimbus_core::{Digest, ObjectKey};

/// The checksums of all rows on disk, and of all of them together. It finds a row that is missing, or that an older
/// commit wrote, which no checksum of its own shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ledger {
    rows: BTreeMap<ObjectKey, Digest>,
    total: Digest,
}

// === impl Ledger ===

impl Ledger {
    /// Enters a row, or with `None` strikes it out; returns what was there.
    pub(crate) fn set(&mut self, key: ObjectKey, checksum: Option<Digest>) -> Option<Digest> {
        let before = match checksum {
            Some(checksum) => {
                self.total.toggle(checksum);
                self.rows.insert(key, checksum)
            }
            None => self.rows.remove(&key),
        };
        self.total.toggle(before.unwrap_or_default());
        before
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(crate) fn total(&self) -> Digest {
        self.total
    }
}
