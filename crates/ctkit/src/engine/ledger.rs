//! What a shard has published, shared with those who publish for it.

use std::sync::Arc;

use nimbus_core::{Failure, ObjectKey};
use nimbus_store::{Draft, Record, Step};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    engine::sending::Delivered,
    few::Few,
    publications::{Owner, Publications},
};

/// What a shard has published, shared with those who publish for it: first reactions stage what they publish where they
/// run, and not one after the other in the engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedLedger(Arc<Mutex<Ledger>>);

/// What a shard has published.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) publications: Publications,
}

// === impl SharedLedger ===

impl SharedLedger {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock()
    }
}

// === impl Ledger ===

impl Ledger {
    /// Stages what a reaction publishes, appends its steps, and says how many they are.
    pub(crate) fn stage(
        &mut self,
        key: &ObjectKey,
        record: &Record,
        children: Few<Draft>,
        steps: &mut Vec<Step>,
    ) -> Result<usize, Failure> {
        // Most children say whose they are.
        let said = children.iter().find_map(|child| child.owner.as_ref()?.life_of(key));
        let uid = said.filter(|uid| record.has_uid(uid)).cloned().unwrap_or_else(|| record.to_uid());
        let owner = Owner { key: key.clone(), uid, generation: record.generation() };
        let before = steps.len();
        let staged = self.publications.stage(&owner, children, steps);
        staged.map_err(|collision| Failure::from(collision).with_code("COLLISION").permanent())?;
        Ok(steps.len() - before)
    }

    /// A transaction has happened.
    pub(crate) fn committed(&mut self, delivered: &[Delivered]) {
        for one in delivered {
            self.publications.committed(&one.key);
            self.publications.written(&one.children);
        }
    }
}
