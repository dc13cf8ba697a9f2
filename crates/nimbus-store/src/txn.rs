//! Transactions: what a writer asks for, what came of it, and why it was refused.

mod draft;

use std::sync::Arc;

use bytes::Bytes;
use nimbus_core::{Finalizers, Generation, Invalid, Kind, ObjectKey, PublisherId, Revision, Uid};

pub use self::draft::Draft;
use crate::{
    durable::Lost,
    leases::{Guard, Held},
};

/// Many changes under one revision: all of them happen, or none.
#[derive(Debug, Clone)]
pub struct Txn {
    /// Who writes.
    pub publisher: PublisherId,
    /// Which instance of it; a lower one than seen before is refused, 0 is not fenced.
    pub fence: u64,
    /// Leases that the writer must hold, with exactly these tokens.
    pub leases: Vec<Guard>,
    /// The changes; no name twice.
    pub steps: Vec<Step>,
}

/// One change and its conditions.
#[derive(Debug, Clone)]
pub struct Step {
    /// The change.
    pub op: Op,
    /// What must hold before.
    pub precondition: Precondition,
    /// Overwrite or delete an object of another publisher.
    pub take_over: bool,
}

/// One change.
#[derive(Debug, Clone)]
pub enum Op {
    /// The object should be like this.
    Upsert(Draft),
    /// The object should not exist.
    Delete(ObjectKey),
    /// The status should be like this; the spec is not touched.
    Status(StatusDraft),
    /// Others have something to do, or have done it, before the object goes.
    Finalizers(FinalizersDraft),
}

/// A status as its reporter wants it.
#[derive(Debug, Clone)]
pub struct StatusDraft {
    /// Whose status.
    pub key: ObjectKey,
    /// An encoded `Any`.
    pub status: Bytes,
    /// The generation that it speaks of.
    pub observed: Generation,
}

/// A change of who must finish before an object goes.
#[derive(Debug, Clone)]
pub struct FinalizersDraft {
    /// Whose finalizers.
    pub key: ObjectKey,
    /// Those who will have something to do.
    pub add: Finalizers,
    /// Those who are done.
    pub remove: Finalizers,
}

/// What must hold of an object before a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Precondition {
    /// It does not exist.
    pub absent: bool,
    /// It is this life of the name.
    pub uid: Option<Uid>,
    /// Nothing has changed since.
    pub revision: Option<Revision>,
    /// The spec has not changed since.
    pub generation: Option<Generation>,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What happened.
    pub effect: Effect,
    /// The object as it is now, or was.
    pub uid: Option<Uid>,
    /// Its generation.
    pub generation: Generation,
    /// Its revision.
    pub revision: Revision,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It is new, or a new life of its name.
    Created,
    /// It is different.
    Updated,
    /// It was already like this.
    Unchanged,
    /// It is gone.
    Deleted,
    /// It was already gone.
    Absent,
    /// It goes when its last finalizer does.
    Deleting,
}

/// A transaction that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its revision; if nothing changed, the newest one.
    pub revision: Revision,
    /// One for each step.
    pub outcomes: Vec<Outcome>,
}

/// Why a transaction did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A step cannot be done.
    #[error("step {step}, {key}: {reason}")]
    Step {
        /// Which step, from 0.
        step: usize,
        /// The object of that step.
        key: ObjectKey,
        /// Why.
        reason: Reason,
    },
    /// A newer instance of the publisher has written.
    #[error("publisher {publisher} is fenced: a newer instance wrote with fence {current}, this one has {given}")]
    Fenced {
        /// Who.
        publisher: PublisherId,
        /// What it said.
        given: u64,
        /// What it would have to say at least.
        current: u64,
    },
    /// The writer does not hold a lease that it must hold.
    #[error("lease {lease} is lost: token {token} is not good, {}", display_holder(.current.as_ref()))]
    LeaseLost {
        /// The name of the lease.
        lease: Arc<str>,
        /// The token that the writer has.
        token: u64,
        /// The lease as it is, if anybody holds it.
        current: Option<Held>,
    },
    /// Revisions from outside must rise, and leave room for more.
    #[error("revision {given} is not between {head} and the highest possible one")]
    NotAhead {
        /// The revision that was to be used.
        given: Revision,
        /// The newest one.
        head: Revision,
    },
    /// A limit on the collection, or on a transaction.
    #[error("{limit} are limited to {max}")]
    Full {
        /// Which limit.
        limit: &'static str,
        /// How much is allowed.
        max: usize,
    },
    /// This sync is not open: it never began, it was ended, or a newer one of the same publisher replaced it.
    #[error("no open sync of publisher {0}: it was ended or replaced by a newer one")]
    NoSync(PublisherId),
    /// The kind is not among those that the sync covers.
    #[error("{key} is not covered by this sync, which began with other kinds")]
    NotCovered {
        /// The object.
        key: ObjectKey,
        /// Its kind.
        kind: Kind,
    },
    /// The disk has failed, so that nothing is accepted until a restart. Of what was already on its way, nobody can say
    /// whether it is there after it.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Why a step cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A precondition does not hold.
    #[error("expected {field} {expected}, found {found}")]
    Precondition {
        /// Which part of it.
        field: &'static str,
        /// What was expected.
        expected: String,
        /// What there is.
        found: String,
    },
    /// Another publisher owns the object.
    #[error("it belongs to publisher {0} (hint: set take_over to overwrite it)")]
    Foreign(PublisherId),
    /// An older generation must not replace a newer one.
    #[error("generation {given} is older than the current {current}")]
    StaleGeneration {
        /// What the publisher said.
        given: Generation,
        /// What there is.
        current: Generation,
    },
    /// Two different specs cannot have the same generation.
    #[error("the spec differs, but generation {0} is the same")]
    SameGeneration(Generation),
    /// Strong references must not form a cycle.
    #[error("its references form a cycle: {}", display_path(.0))]
    Cycle(Vec<ObjectKey>),
    /// A field of the spec is not as it should be.
    #[error("field {field} of the spec: {reason}")]
    Field {
        /// Which field, from the spec on.
        field: String,
        /// What is wrong with it.
        reason: Box<Reason>,
    },
    /// A name, or a selector, is none.
    #[error(transparent)]
    Invalid(Invalid),
    /// The same name twice in one transaction.
    #[error("it is changed twice in one transaction")]
    Twice,
    /// Only an object has a status, or finalizers.
    #[error("it does not exist")]
    NoSuchObject,
    /// A delete was asked for, and nothing changes that any more.
    #[error("it is being deleted and waits for {} (hint: write it again when it is gone)", display_names(.0))]
    Deleting(Finalizers),
    /// A new life cannot begin before the finalizers of the one before are done.
    #[error(
        "another life of the name has the finalizers {} (hint: delete it, and write it again when it is gone)",
        display_names(.0)
    )]
    Unfinished(Finalizers),
    /// A status cannot speak of a generation that does not exist.
    #[error("the status speaks of generation {observed}, the object is at {current}")]
    ObservedAhead {
        /// What the reporter said.
        observed: Generation,
        /// What there is.
        current: Generation,
    },
    /// A limit on single objects.
    #[error("{limit}: {size}, at most {max} allowed")]
    TooLarge {
        /// Which limit.
        limit: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        max: usize,
    },
}

fn display_holder(current: Option<&Held>) -> String {
    current.map_or_else(
        || "nobody holds it now".to_owned(),
        |held| format!("{} holds it now with token {}", held.holder, held.token),
    )
}

fn display_names(names: &Finalizers) -> String {
    names.iter().collect::<Vec<_>>().join(", ")
}

fn display_path(path: &[ObjectKey]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}

// === impl Reason ===

impl Reason {
    /// The limit that was reached, if it is one.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { limit, .. } => Some(limit),
            Self::Field { reason, .. } => reason.limit(),
            _ => None,
        }
    }
}

// === impl Op ===

impl Op {
    /// The name that is changed.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Upsert(draft) => &draft.key,
            Self::Delete(key) => key,
            Self::Status(draft) => &draft.key,
            Self::Finalizers(draft) => &draft.key,
        }
    }
}

// === impl Step ===

impl From<Op> for Step {
    fn from(op: Op) -> Self {
        Self { op, precondition: Precondition::default(), take_over: false }
    }
}

// === impl Txn ===

impl Txn {
    /// Deletes what a publisher no longer names.
    pub(crate) fn sweep(publisher: PublisherId, fence: u64, keys: Vec<ObjectKey>) -> Self {
        Self {
            publisher,
            fence,
            leases: Vec::new(),
            steps: keys.into_iter().map(|key| Op::Delete(key).into()).collect(),
        }
    }
}
