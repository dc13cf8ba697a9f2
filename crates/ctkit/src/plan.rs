//! What would be done.

use nimbus_core::ObjectKey;
use nimbus_store::{Op, Step};

/// What a reaction would do, if it were not a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Planned {
    /// The controller.
    pub controller: String,
    /// The object that was reacted to.
    pub object: ObjectKey,
    /// What would come of it, in order.
    pub changes: Vec<PlannedChange>,
}

/// A change that would be made on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlannedChange {
    /// It would be published; what is there already and the same stays as it is.
    Publish(ObjectKey),
    /// It would be withdrawn.
    Withdraw(ObjectKey),
}

// === impl PlannedChange ===

impl PlannedChange {
    pub(crate) fn of(step: &Step) -> Option<Self> {
        match &step.op {
            Op::Upsert(draft) => Some(Self::Publish(draft.key.clone())),
            Op::Delete(key) => Some(Self::Withdraw(key.clone())),
            _ => None,
        }
    }
}
