//! The end of an object.

use std::sync::Arc;

use nimbus_core::{ObjectKey, Reference, Revision, Uid};

use crate::record::{Slot, strong};

/// The end of an object, for everybody or for one lane.
#[derive(Debug)]
pub struct Grave {
    /// What ended.
    pub key: ObjectKey,
    /// Its last life.
    pub uid: Uid,
    /// When.
    pub slot: Slot,
    /// Readers whose position is below this never saw it.
    pub since: Revision,
    /// What it referred to, for the order of removals.
    pub refs: Arc<[Reference]>,
    /// It still exists elsewhere.
    pub out_of_scope: bool,
}

// === impl Grave ===

impl Grave {
    /// What it needed while it lived.
    pub fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        strong(&self.refs)
    }
}
