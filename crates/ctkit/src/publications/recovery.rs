//! What is known after a start, or on another bus: what is there says whose it is.

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey};
use nimbus_store::Record;
use nimbus_wire::v1;

use crate::publications::{Open, Publications, Version};

// === impl Publications ===

impl Publications {
    /// Begins again with what is on the target now. Nothing of it is sure to be wanted until its owner has published
    /// again; transactions that may still happen are not forgotten.
    pub(crate) fn recover(&mut self, records: &[Arc<Record>]) {
        let before = self.forget_owners();
        for record in records {
            match record.owner().and_then(|owner| owner_key(&owner)) {
                Some(owner) => self.claim(&owner, record.key().clone()),
                None => drop(self.orphans.insert(record.key().clone())),
            }
        }
        for owner in before.open.keys() {
            for child in before.children(owner) {
                if self.owner_of(child).is_none() {
                    self.claim(owner, child.clone());
                }
            }
            self.open.insert(owner.clone(), Open::default());
        }
        self.unsettled = self.owners.keys().cloned().collect();
        for record in records {
            self.note(record.key(), Version::of_record(record));
        }
    }

    /// Somebody else publishes from now on: whose children are is forgotten, and which versions of them there are is not.
    /// Gives back the rest of what was known.
    pub(crate) fn forget_owners(&mut self) -> Self {
        let mut known = std::mem::take(&mut self.known);
        known.retain(|_, of| {
            of.owner = None;
            of.version.is_some()
        });
        if known.len() < known.capacity() / 4 {
            known.shrink_to_fit();
        }
        std::mem::replace(self, Self { known, ..Self::default() })
    }

    /// What must be kept when a sync ends: children of owners that have not published since the start, and children
    /// that nobody owns. Some may not be there. In their order, each once.
    ///
    /// What has been published since is not among them: it was said, if the sync began before.
    pub(crate) fn survivors(&self) -> Vec<ObjectKey> {
        let unsettled = self.unsettled.iter().flat_map(|owner| self.children(owner));
        let mut keys: Vec<_> = unsettled.chain(&self.orphans).cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// An owner that has no proper name is none: what it owned is kept.
fn owner_key(owner: &v1::Owner) -> Option<ObjectKey> {
    ObjectKey::new(Kind::new(&owner.kind).ok()?, &owner.namespace, &owner.name).ok()
}
