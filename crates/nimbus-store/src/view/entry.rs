//! An object of a view, and its places in the lanes.

use std::{cmp::Ordering, sync::Arc};

use nimbus_core::{AgentId, ObjectKey, Revision};

use crate::{
    lane::Address,
    record::{Record, Slot},
    tree::Item,
    view::shared_address,
};

/// An object and its places in the lanes.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) record: Arc<Record>,
    /// Since when observers may hold it.
    pub(crate) since: Revision,
    /// Where it is for agents; nothing if it is in one lane, and has been since then: most are.
    seats: Option<Arc<Seats>>,
}

/// Places in the lanes of agents.
#[derive(Debug, Clone)]
pub(crate) enum Seats {
    /// In one lane, at the slot of the record; since when its readers may hold it.
    Shared(Revision),
    /// In the lanes of named agents, in their order. Not all at the slot of the record: who was named before an
    /// audience grew is not sent the object again.
    Named(Arc<[Seat]>),
}

#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) agent: AgentId,
    pub(crate) slot: Slot,
    pub(crate) since: Revision,
}

// === impl Entry ===

impl Entry {
    pub(crate) fn new(record: Arc<Record>, since: Revision, seats: Seats) -> Self {
        let seats = match seats {
            Seats::Shared(shared) if shared == since => None,
            seats => Some(Arc::new(seats)),
        };
        Self { record, since, seats }
    }

    /// Its places in the lanes of agents.
    pub(crate) fn seats(&self) -> Seats {
        self.seats.as_deref().cloned().unwrap_or(Seats::Shared(self.since))
    }

    /// The places of agents that it names, if it names any.
    pub(crate) fn named(&self) -> Option<&[Seat]> {
        match self.seats.as_deref() {
            Some(Seats::Named(seats)) => Some(seats),
            _ => None,
        }
    }

    /// Lanes of agents in which the object lies, where, and since when.
    pub(crate) fn places(&self) -> Vec<(Address, Slot, Revision)> {
        match self.seats() {
            Seats::Shared(since) => vec![(shared_address(self.record.audience()), self.record.slot(), since)],
            Seats::Named(seats) => seats
                .iter()
                .map(|seat| (Address::Agent(seat.agent.clone()), seat.slot, seat.since))
                .collect(),
        }
    }
}

/// Entries of one kind have the order of their names. A mark is the length of a namespace, the namespace and a name.
impl Item for Entry {
    type Key<'a> = (&'a [u8], &'a [u8]);
    type Mark = Arc<[u8]>;

    fn key(&self) -> Self::Key<'_> {
        self.record.names_in_kind()
    }

    fn mark(&self) -> Arc<[u8]> {
        mark_of(&self.record)
    }

    fn place(mark: &Arc<[u8]>) -> Self::Key<'_> {
        mark[1..].split_at(usize::from(mark[0]))
    }

    fn order(one: Self::Key<'_>, two: Self::Key<'_>) -> Ordering {
        compare_places(one, two)
    }
}

/// The length of the namespace, the namespace and the name.
pub(crate) fn mark_of(record: &Record) -> Arc<[u8]> {
    let (namespace, name) = record.names_in_kind();
    let len = u8::try_from(namespace.len()).expect("names are limited");
    [&[len], namespace, name].concat().into()
}

/// Compares namespaces, and then names.
pub(crate) fn compare_places(one: (&[u8], &[u8]), two: (&[u8], &[u8])) -> Ordering {
    one.cmp(&two)
}

/// Where the entry of that name is, within its kind.
pub(crate) fn place_of(key: &ObjectKey) -> (&[u8], &[u8]) {
    (key.namespace().as_bytes(), key.name().as_bytes())
}
