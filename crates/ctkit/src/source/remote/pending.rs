//! Changes that lead to a position that has not been reached yet.

use std::sync::Arc;

use nimbus_core::{KeyMap, ObjectKey, Revision};
use nimbus_store::Record;

use crate::source::{Change, remote::leaf::Leaf};

/// Changes that lead to a position that has not been reached yet: of each object the last one, in the order in which
/// they came.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    changes: Vec<Option<(ObjectKey, Option<Arc<Record>>)>>,
    places: KeyMap<usize>,
}

// === impl Pending ===

impl Pending {
    pub(crate) fn add(&mut self, change: nimbus_client::Change<Leaf>) {
        let (key, record) = match change {
            nimbus_client::Change::Put(Leaf { record: None, .. }) => return,
            nimbus_client::Change::Put(Leaf { record: Some(record), .. }) => (record.key().clone(), Some(record)),
            nimbus_client::Change::Delete(key) => (key, None),
        };
        if let Some(before) = self.places.insert(key.clone(), self.changes.len()) {
            self.changes[before] = None;
        }
        self.changes.push(Some((key, record)));
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Everything that is there, for those who had nothing before.
    pub(crate) fn take_list(&mut self) -> Vec<Arc<Record>> {
        let Self { changes, .. } = std::mem::take(self);
        changes.into_iter().flatten().filter_map(|(_, record)| record).collect()
    }

    /// What has changed. What is gone was gone at this revision at the latest.
    pub(crate) fn take(&mut self, at: Revision) -> Vec<Change> {
        let Self { changes, .. } = std::mem::take(self);
        let change = |(key, record)| match record {
            Some(record) => Change::Put(record),
            None => Change::Removed(key, at),
        };
        changes.into_iter().flatten().map(change).collect()
    }
}
