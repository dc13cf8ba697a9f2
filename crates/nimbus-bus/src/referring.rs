//! What objects refer to by what their specs say, whoever writes them.

use std::sync::Arc;

use nimbus_core::Reference;
use nimbus_store::{Draft, Op, Reason, Refused, Txn};

use crate::{
    inner::Inner,
    schemas::{Declared, Flaw, Raw, Records},
};

// === impl Inner ===

impl Inner {
    /// The transaction with everything that its specs refer to; none if it says all of it already.
    ///
    /// # Errors
    /// If a spec names what no object can be called, or too much.
    pub(crate) fn with_declared(&self, txn: &Txn) -> Result<Option<Txn>, Refused> {
        let declared = self.schemas.declared();
        let upserts = txn.steps.iter().filter_map(|step| upsert(&step.op));
        if !upserts.into_iter().any(|draft| concerns(&declared, draft)) {
            return Ok(None);
        }
        let mut txn = txn.clone();
        for (at, step) in txn.steps.iter_mut().enumerate() {
            if let Op::Upsert(draft) = &mut step.op {
                self.declare(&declared, at, draft)?;
            }
        }
        Ok(Some(txn))
    }

    /// The same for objects of a sync.
    ///
    /// # Errors
    /// If a spec names what no object can be called, or too much.
    pub(crate) fn add_declared(&self, drafts: &mut [Draft]) -> Result<(), Refused> {
        let declared = self.schemas.declared();
        drafts
            .iter_mut()
            .enumerate()
            .filter(|(_, draft)| concerns(&declared, draft))
            .try_for_each(|(at, draft)| self.declare(&declared, at, draft))
    }

    fn declare(&self, declared: &Declared, at: usize, draft: &mut Draft) -> Result<(), Refused> {
        let max = self.config.limits.store.refs;
        let completed = declared.complete(&draft.key, message(&draft.spec), stated(&draft.refs), max);
        let refuse = |flaw| Refused::Step { step: at, key: draft.key.clone(), reason: Reason::from(flaw) };
        draft.refs = completed
            .map_err(refuse)
            .inspect_err(|refused| self.metrics.refuse_transaction(refused))?;
        Ok(())
    }

    /// Names the field that closes a cycle, if it is a field.
    pub(crate) fn name_field<'a>(&self, refused: Refused, draft: impl FnOnce(usize) -> Option<&'a Draft>) -> Refused {
        let Refused::Step { step, key, reason: Reason::Cycle(cycle) } = refused else { return refused };
        let after = cycle.iter().skip_while(|way| **way != key).nth(1);
        let field = after
            .zip(draft(step))
            .and_then(|(needed, draft)| self.schemas.declared().field_with(&key, message(&draft.spec), needed));
        let reason = match field {
            Some(field) => Reason::Field { field, reason: Box::new(Reason::Cycle(cycle)) },
            None => Reason::Cycle(cycle),
        };
        Refused::Step { step, key, reason }
    }
}

/// What an operation says of how an object should be.
pub(crate) fn upsert(op: &Op) -> Option<&Draft> {
    match op {
        Op::Upsert(draft) => Some(draft),
        _ => None,
    }
}

/// Whether a spec may refer to others, or somebody sends back what one did.
fn concerns(declared: &Declared, draft: &Draft) -> bool {
    declared.covers(draft.key.kind().as_str()) || draft.refs.iter().any(|reference| reference.declared)
}

/// Without what only a spec said when somebody read it.
fn stated(refs: &Arc<[Reference]>) -> Arc<[Reference]> {
    if refs.iter().any(|reference| reference.declared) {
        refs.iter().filter(|reference| !reference.declared).cloned().collect()
    } else {
        refs.clone()
    }
}

/// The message in an encoded `Any`.
fn message(any: &[u8]) -> &[u8] {
    /// Number of `Any.value`.
    const VALUE: u32 = 2;

    let values = Records::new(any).flatten().filter(|record| record.number == VALUE);
    let values = values.filter_map(|record| match record.value {
        Raw::Len(bytes) => Some(bytes),
        _ => None,
    });
    values.last().unwrap_or_default()
}

// === impl Reason ===

impl From<Flaw> for Reason {
    fn from(Flaw { field, reason }: Flaw) -> Self {
        if field.is_empty() { reason } else { Self::Field { field, reason: Box::new(reason) } }
    }
}
