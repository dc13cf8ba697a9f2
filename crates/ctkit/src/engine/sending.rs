//! A transaction on its way to the bus.

use std::sync::Arc;

use nimbus_core::{ObjectKey, PublisherId, Revision};
use nimbus_store::{Committed, Effect, Guard, Op, Record, Step, Txn};

use crate::{
    action::Next,
    context::Wishes,
    engine::{ledger::SharedLedger, starting::Sort, station::StationId, tenure::Tenure},
    erased::ErasedTarget,
    few::Few,
    instances::{Permit, Shard, Shares},
    publications::Version,
    source::CommitError,
};

/// A reaction that went well, and what is to be published for it.
pub(crate) struct Staged {
    pub(crate) key: ObjectKey,
    pub(crate) record: Arc<Record>,
    pub(crate) sort: Sort,
    pub(crate) next: Next,
    pub(crate) wishes: Wishes,
    /// So many of the steps are its own.
    pub(crate) steps: usize,
}

/// Reactions that went well, and what is to be published for them, in the same order.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) staged: Vec<Staged>,
    pub(crate) steps: Vec<Step>,
}

/// Reactions that become one transaction. Much of what it takes can be done by any task, while the engine goes on.
pub(crate) struct Parcel {
    pub(crate) station: StationId,
    pub(crate) shard: usize,
    pub(crate) publisher: PublisherId,
    pub(crate) batch: Batch,
    pub(crate) tenure: Tenure,
    /// Is told that it has happened.
    pub(crate) ledger: SharedLedger,
    pub(crate) target: Arc<dyn ErasedTarget>,
    pub(crate) shares: Shares,
    /// Leases are kept at the target.
    pub(crate) leases_there: bool,
}

/// A transaction that has reached the bus, or has not.
pub(crate) struct Landed {
    pub(crate) station: StationId,
    pub(crate) shard: usize,
    pub(crate) fate: Fate,
    pub(crate) tenure: Tenure,
}

/// What became of a transaction.
pub(crate) enum Fate {
    /// It happened.
    Taken(Revision, Vec<Delivered>),
    /// It did not, or nobody knows.
    Refused(CommitError, Batch),
}

/// A reaction whose transaction has happened.
pub(crate) struct Delivered {
    pub(crate) key: ObjectKey,
    pub(crate) record: Arc<Record>,
    pub(crate) sort: Sort,
    pub(crate) next: Next,
    pub(crate) wishes: Wishes,
    pub(crate) children: Few<Child>,
    /// Something on the bus is different now.
    pub(crate) changed: bool,
}

/// What was written of a child.
pub(crate) struct Child {
    pub(crate) key: ObjectKey,
    /// `None` if it was withdrawn.
    pub(crate) version: Option<Version>,
}

/// Steps of a transaction, but for those of one reaction. A bus takes twice as many and more, unless told otherwise.
const STEPS: usize = 4096;

/// Bytes of a transaction, but for those of one reaction: a quarter of what a bus takes, unless told otherwise.
const BYTES: usize = 1 << 20;

/// Of a step, beside its spec, as far as it matters here.
const AROUND: usize = 256;

// === impl Batch ===

impl Batch {
    /// In parts of which each is small enough for a transaction, if none of the reactions is too large by itself.
    pub(crate) fn parts(self) -> Vec<Self> {
        let size = |step: &Step| match &step.op {
            Op::Upsert(draft) => AROUND + draft.spec.len(),
            _ => AROUND,
        };
        let is_small = |steps: &[Step]| steps.len() <= STEPS && steps.iter().map(size).sum::<usize>() <= BYTES;
        if is_small(&self.steps) {
            return vec![self];
        }
        let mut parts: Vec<Self> = Vec::new();
        let mut room = 0;
        for one in self.split() {
            let bytes = one.steps.iter().map(size).sum();
            match parts.last_mut() {
                Some(part) if bytes <= room && part.steps.len() + one.steps.len() <= STEPS => {
                    room -= bytes;
                    part.staged.extend(one.staged);
                    part.steps.extend(one.steps);
                }
                _ => {
                    room = BYTES.saturating_sub(bytes);
                    parts.push(one);
                }
            }
        }
        parts
    }

    /// Each reaction by itself.
    pub(crate) fn split(self) -> impl Iterator<Item = Self> {
        let mut steps = self.steps.into_iter();
        self.staged.into_iter().map(move |one| {
            let steps = steps.by_ref().take(one.steps).collect();
            Self { staged: vec![one], steps }
        })
    }
}

// === impl Parcel ===

impl Parcel {
    /// Sends it.
    pub(crate) async fn send(self) -> Landed {
        let Self { station, shard, publisher, batch, tenure, ledger, target, shares, leases_there } = self;
        let Batch { staged, steps } = batch;
        if steps.is_empty() {
            let committed = Committed { revision: Revision::ZERO, outcomes: Vec::new() };
            let fate = Fate::taken(&committed, staged, &steps).noted(&ledger, &tenure);
            return Landed { station, shard, fate, tenure };
        }
        // Without one, somebody else may have the shard by now. Nothing was sent, and nothing will be.
        let Some(permit) = shares.permit(Shard::at(shard)) else {
            return Landed { station, shard, fate: Fate::Refused(run_out(), Batch { staged, steps }), tenure };
        };
        let (fence, leases) = fencing(permit, leases_there);
        let txn = Arc::new(Txn { publisher, fence, leases, steps });
        let fate = match target.commit(txn.clone()).await {
            Ok(committed) => Fate::taken(&committed, staged, &txn.steps).noted(&ledger, &tenure),
            Err(error) => Fate::Refused(error, Batch { staged, steps: Arc::unwrap_or_clone(txn).steps }),
        };
        Landed { station, shard, fate, tenure }
    }
}

// === impl Fate ===

impl Fate {
    fn taken(committed: &Committed, staged: Vec<Staged>, steps: &[Step]) -> Self {
        let (mut outcomes, mut steps) = (committed.outcomes.iter(), steps.iter());
        let deliver = |one: Staged| Delivered {
            // All of its outcomes are taken, also after one that has changed something: the next ones are another's.
            changed: outcomes.by_ref().take(one.steps).fold(false, |changed, outcome| {
                changed | !matches!(outcome.effect, Effect::Unchanged | Effect::Absent)
            }),
            children: steps.by_ref().take(one.steps).map(Child::of).collect(),
            key: one.key,
            record: one.record,
            sort: one.sort,
            next: one.next,
            wishes: one.wishes,
        };
        Self::Taken(committed.revision, staged.into_iter().map(deliver).collect())
    }

    /// Notes that it has happened, if that is of interest. Tenures end before ledgers are begun anew.
    fn noted(self, ledger: &SharedLedger, tenure: &Tenure) -> Self {
        if let Self::Taken(_, delivered) = &self {
            let mut ledger = ledger.lock();
            if !tenure.is_over() {
                ledger.committed(delivered);
            }
        }
        self
    }

    /// Whose it was.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        match self {
            Self::Taken(_, delivered) => delivered.iter().map(|one| one.key.clone()).collect(),
            Self::Refused(_, batch) => batch.staged.iter().map(|one| one.key.clone()).collect(),
        }
    }
}

// === impl Child ===

impl Child {
    pub(crate) fn of(step: &Step) -> Self {
        Self { key: step.op.key().clone(), version: Version::of(&step.op) }
    }
}

/// What it means that there is no permit.
pub(crate) fn run_out() -> CommitError {
    CommitError::Fenced("the lease has run out".to_owned())
}

/// What a transaction must carry: where the leases are, themselves; elsewhere, a number that rises with every holder.
pub(crate) fn fencing(permit: Permit, leases_there: bool) -> (u64, Vec<Guard>) {
    let token = permit.guard().map_or(0, |guard| guard.token);
    if leases_there { (token, permit.into_guards()) } else { (token, Vec::new()) }
}

#[cfg(test)]
mod tests;
