//! Objects that were put into the queue a moment ago, as they were read.

use std::{collections::VecDeque, sync::Arc};

use nimbus_core::ObjectKey;
use nimbus_store::Record;

/// Objects that were put into the queue a moment ago, as they were read, in the same order: the queue hands them out in
/// that order, and whoever looks at them for the first time need not look them up.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    records: VecDeque<Arc<Record>>,
    /// How often something had been replaced or taken away when they were read: after that, they may not be the newest.
    edits: u64,
}

/// Others may come in between, and some may be taken out of the queue again.
const WITHIN: usize = 4;

/// Those that nobody has asked for by then were taken out of the queue, or are not the next ones in it.
const KEPT: usize = 4096;

// === impl Fresh ===

impl Fresh {
    /// These come next. What is still there from before stays, if it is as new.
    pub(crate) fn extend(&mut self, records: impl IntoIterator<Item = Arc<Record>>, edits: u64) {
        if self.edits != edits || self.records.len() > KEPT {
            self.records.clear();
            self.edits = edits;
        }
        self.records.extend(records);
    }

    /// The newest version of an object, if it is known without a look.
    pub(crate) fn take(&mut self, key: &ObjectKey, edits: u64) -> Option<Arc<Record>> {
        if self.edits != edits {
            self.records = VecDeque::new();
            return None;
        }
        let at = self.records.iter().take(WITHIN).position(|record| record.key() == key)?;
        self.records.drain(..at);
        self.records.pop_front()
    }
}

#[cfg(test)]
mod tests;
