//! A report that has been checked.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ObjectKey, Revision};
use nimbus_wire::v1;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fault,
    fleet::{events::Event, exception::Exception, progress::Marks, statuses::ObjectStatus},
};

/// A report that has been checked, as far as it can be without knowing the session.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) sequence: u64,
    pub(crate) marks: Marks,
    /// How many changes of scope the marks include.
    pub(crate) scope_changes: u32,
    /// It says everything, rather than what changed. The first of a session always does.
    pub(crate) full: bool,
    pub(crate) exceptions: BTreeMap<ObjectKey, Exception>,
    pub(crate) cleared: BTreeSet<ObjectKey>,
    pub(crate) statuses: Vec<ObjectStatus>,
    pub(crate) events: Vec<Event>,
    pub(crate) received_bytes: u64,
    pub(crate) leaving: bool,
}

// === impl Report ===

impl Report {
    /// Checks and takes a report.
    pub(crate) fn parse(wire: v1::ReportRequest, now: Instant) -> Result<Self, Status> {
        if wire.sequence == 0 {
            return Err(fault::bad("sequence", "1 in the first report of a session, then one more in each"));
        }
        let exceptions = each(wire.exceptions, "exceptions", |exception, path| Exception::parse(exception, path, now))?;
        let cleared = wire.cleared.iter().map(ObjectKey::try_from).collect::<Result<_, _>>();
        Ok(Self {
            sequence: wire.sequence,
            marks: Marks { received: Revision(wire.received), applied: Revision(wire.applied) },
            scope_changes: wire.scope_changes,
            full: wire.full || wire.sequence == 1,
            exceptions: exceptions.into_iter().collect(),
            cleared: cleared.map_err(|error| fault::field("cleared", &error))?,
            statuses: each(wire.statuses, "statuses", ObjectStatus::parse)?,
            events: each(wire.events, "events", |event, path| Event::parse(event, path, now))?,
            received_bytes: wire.received_bytes,
            leaving: wire.leaving,
        })
    }
}

fn each<T, U>(items: Vec<T>, field: &str, parse: impl Fn(T, &str) -> Result<U, Status>) -> Result<Vec<U>, Status> {
    items
        .into_iter()
        .enumerate()
        .map(|(at, item)| parse(item, &format!("{field}[{at}]")))
        .collect()
}
