//! The words of the store as they travel, and back.

use bytes::Bytes;
use nimbus_core::{Epoch, Generation, ObjectKey, Reference, Revision, Uid};
use nimbus_store::{Committed, Draft, Effect, Guard, Op, Outcome, Precondition, Step, SyncSummary, Txn};
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;

use crate::{source::CommitError, target::SyncEnded};

/// A transaction as it travels.
pub(crate) fn apply(txn: Txn) -> Result<v1::ApplyRequest, CommitError> {
    let Txn { publisher, fence, leases, steps } = txn;
    Ok(v1::ApplyRequest {
        publisher: publisher.to_string(),
        fence,
        ops: steps.into_iter().map(op).collect::<Result<_, _>>()?,
        dry_run: false,
        leases: tokens(&leases),
    })
}

/// What came of a transaction.
pub(crate) fn committed(answer: &v1::ApplyResponse) -> Committed {
    Committed { revision: Revision(answer.revision), outcomes: answer.outcomes.iter().map(outcome).collect() }
}

/// What came of a sync.
pub(crate) fn ended(answer: &v1::SyncResponse) -> SyncEnded {
    let v1::SyncResponse { epoch, revision, created, updated, unchanged, deleted } = *answer;
    let summary = SyncSummary { created, updated, unchanged, deleted };
    SyncEnded { epoch: Some(Epoch(epoch)), revision: Revision(revision), summary }
}

/// Leases that a writer must hold.
pub(crate) fn tokens(leases: &[Guard]) -> Vec<v1::LeaseToken> {
    let token = |guard: &Guard| v1::LeaseToken { name: guard.lease.to_string(), token: guard.token };
    leases.iter().map(token).collect()
}

fn op(step: Step) -> Result<v1::Op, CommitError> {
    let Step { op, precondition, take_over } = step;
    let op = match op {
        Op::Upsert(draft) => v1::op::Op::Upsert(upsert(draft)?),
        Op::Delete(key) => v1::op::Op::Delete(key.to_wire()),
        Op::Status(draft) => v1::op::Op::Status(v1::StatusWrite {
            status: any(&draft.key, "status", draft.status)?,
            key: Some(draft.key.to_wire()),
            observed_generation: draft.observed.0,
        }),
        Op::Finalizers(draft) => v1::op::Op::Finalizers(v1::FinalizersWrite {
            key: Some(draft.key.to_wire()),
            add: draft.add.to_wire(),
            remove: draft.remove.to_wire(),
        }),
    };
    let none = precondition == Precondition::default();
    Ok(v1::Op { op: Some(op), precondition: (!none).then(|| conditions(&precondition)), take_over })
}

fn upsert(draft: Draft) -> Result<v1::Object, CommitError> {
    Ok(v1::Object {
        spec: any(&draft.key, "spec", draft.spec)?,
        kind: draft.key.kind().to_string(),
        namespace: draft.key.namespace().to_owned(),
        name: draft.key.name().to_owned(),
        uid: draft.uid.as_ref().map(ToString::to_string).unwrap_or_default(),
        generation: draft.generation.map_or(0, |generation| generation.0),
        labels: draft.labels.to_wire(),
        refs: draft.refs.iter().map(Reference::to_wire).collect(),
        owner: draft.owner.map(|owner| owner.to_wire()),
        annotations: draft.annotations.to_wire(),
        audience: draft.audience.to_wire(),
        ..Default::default()
    })
}

fn conditions(precondition: &Precondition) -> v1::Precondition {
    v1::Precondition {
        absent: precondition.absent,
        uid: precondition.uid.as_ref().map(ToString::to_string).unwrap_or_default(),
        revision: precondition.revision.map(|revision| revision.0),
        generation: precondition.generation.map(|generation| generation.0),
    }
}

fn any(key: &ObjectKey, part: &str, bytes: Bytes) -> Result<Option<Any>, CommitError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let wrong = |error| CommitError::Invalid {
        key: Some(key.clone()),
        message: format!("the {part} of {key} is not a google.protobuf.Any: {error}"),
    };
    Any::decode(bytes).map(Some).map_err(wrong)
}

fn outcome(outcome: &v1::Outcome) -> Outcome {
    let effect = match outcome.result() {
        v1::Result::Created => Effect::Created,
        v1::Result::Updated => Effect::Updated,
        v1::Result::Deleted => Effect::Deleted,
        v1::Result::Absent => Effect::Absent,
        v1::Result::Deleting => Effect::Deleting,
        // A result of a sort that came later than this program is success in any case.
        v1::Result::Unchanged | v1::Result::Unspecified => Effect::Unchanged,
    };
    Outcome {
        effect,
        uid: Uid::new(&outcome.uid).ok(),
        generation: Generation(outcome.generation),
        revision: Revision(outcome.revision),
    }
}
