//! Whether a status must be written, and how.

use bytes::Bytes;
use nimbus_core::{Generation, Spec as _, Uid};
use nimbus_store::{Op, Precondition, Record, StatusDraft, Step};
use nimbus_wire::v1;

/// The version of an object that a status was computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The life.
    pub(crate) uid: Uid,
    /// The generation.
    pub(crate) generation: Generation,
}

/// What to do about a status.
#[derive(Debug, Clone)]
#[must_use = "a status that is not written is lost"]
pub(crate) enum Write {
    /// Write it, if the object is still as it was.
    Needed(Box<Step>),
    /// It is there already.
    Unchanged,
    /// Drop it: a status of a newer generation is there, or the object is another one.
    Superseded,
    /// The record is older than what the status was computed from: look again when a newer one is there.
    Behind,
}

/// Whether to write a status over that of a record, of which it was made.
///
/// It speaks of the generation that was seen, which may be older than that of the record, and never of a newer one.
/// Nor does any of its conditions: one that claims to is not told.
pub(crate) fn write(record: &Record, seen: &Seen, mut standing: v1::Standing) -> Write {
    standing.conditions.retain(|condition| condition.generation <= seen.generation.0);
    write_packed(record, seen, standing.pack_to_vec().into())
}

/// The same for a status that is encoded already, and speaks of nothing newer than what was seen.
pub(crate) fn write_packed(record: &Record, seen: &Seen, status: Bytes) -> Write {
    if !record.has_uid(&seen.uid) || record.observed() > seen.generation {
        return Write::Superseded;
    }
    if record.generation() < seen.generation {
        return Write::Behind;
    }
    if record.status_bytes() == status && record.observed() == seen.generation {
        return Write::Unchanged;
    }
    let draft = StatusDraft { key: record.key().clone(), status, observed: seen.generation };
    let precondition =
        Precondition { uid: Some(seen.uid.clone()), revision: Some(record.revision()), ..Precondition::default() };
    Write::Needed(Box::new(Step { precondition, ..Op::Status(draft).into() }))
}
