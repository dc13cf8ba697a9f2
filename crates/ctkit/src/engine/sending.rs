//! A transaction on its way to the bus.

use std::sync::Arc;

use nimbus_core::{ObjectKey, PublisherId, Revision};
use nimbus_store::{Committed, Effect, Guard, Record, Step, Txn};

use crate::{
    action::Next,
    context::Wishes,
    engine::{starting::Sort, station::StationId, tenure::Tenure, versions::Version},
    erased::ErasedTarget,
    few::Few,
    instances::{Permit, Shard, Shares},
    source::CommitError,
};

/// A reaction that went well, and what is to be published for it.
pub(crate) struct Staged {
    pub(crate) key: ObjectKey,
    pub(crate) record: Arc<Record>,
    pub(crate) sort: Sort,
    pub(crate) next: Next,
    pub(crate) wishes: Wishes,
    pub(crate) steps: Vec<Step>,
}

/// Reactions that become one transaction. Much of what it takes can be done by any task, while the engine goes on.
pub(crate) struct Parcel {
    pub(crate) station: StationId,
    pub(crate) shard: usize,
    pub(crate) publisher: PublisherId,
    pub(crate) staged: Vec<Staged>,
    pub(crate) tenure: Tenure,
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
    Refused(CommitError, Vec<Staged>),
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

// === impl Parcel ===

impl Parcel {
    /// Sends it.
    pub(crate) async fn send(self) -> Landed {
        let (station, shard) = (self.station, self.shard);
        let committed = match self.txn() {
            Ok(Some(txn)) => self.target.commit(txn).await,
            Ok(None) => Ok(Committed { revision: Revision::ZERO, outcomes: Vec::new() }),
            Err(error) => Err(error),
        };
        let fate = match committed {
            Ok(committed) => Fate::taken(&committed, self.staged),
            Err(error) => Fate::Refused(error, self.staged),
        };
        Landed { station, shard, fate, tenure: self.tenure }
    }

    /// The transaction; `None` if there is nothing in it.
    fn txn(&self) -> Result<Option<Txn>, CommitError> {
        let steps: Vec<Step> = self.staged.iter().flat_map(|one| one.steps.iter().cloned()).collect();
        if steps.is_empty() {
            return Ok(None);
        }
        // Without one, somebody else may have the shard by now. Nothing was sent, and nothing will be.
        let permit = self.shares.permit(Shard::at(self.shard)).ok_or_else(run_out)?;
        let (fence, leases) = fencing(permit, self.leases_there);
        Ok(Some(Txn { publisher: self.publisher.clone(), fence, leases, steps }))
    }
}

// === impl Fate ===

impl Fate {
    fn taken(committed: &Committed, staged: Vec<Staged>) -> Self {
        let mut outcomes = committed.outcomes.iter();
        let deliver = |one: Staged| Delivered {
            changed: outcomes
                .by_ref()
                .take(one.steps.len())
                .any(|outcome| !matches!(outcome.effect, Effect::Unchanged | Effect::Absent)),
            children: one.steps.iter().map(Child::of).collect(),
            key: one.key,
            record: one.record,
            sort: one.sort,
            next: one.next,
            wishes: one.wishes,
        };
        Self::Taken(committed.revision, staged.into_iter().map(deliver).collect())
    }

    /// Whose it was.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        match self {
            Self::Taken(_, delivered) => delivered.iter().map(|one| one.key.clone()).collect(),
            Self::Refused(_, staged) => staged.iter().map(|one| one.key.clone()).collect(),
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
