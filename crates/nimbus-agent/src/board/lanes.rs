//! What can begin, in the order in which it became possible.

use std::collections::BTreeMap;

use crate::board::slots::Slot;

/// What can begin: one queue each for what is new, for what is tried again, and for looking.
///
/// Each is first in, first out. The first two take turns, so that a crowd of failures does not hold up what is new, nor
/// the other way round. Bounded by the number of nodes: a node stands in one queue at most.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    fresh: BTreeMap<u64, Slot>,
    again: BTreeMap<u64, Slot>,
    looks: BTreeMap<u64, Slot>,
    issued: u64,
    turn_of_again: bool,
}

/// A place in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) lane: Lane,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Fresh,
    Again,
    Look,
}

// === impl Lanes ===

impl Lanes {
    pub(crate) fn enter(&mut self, lane: Lane, slot: Slot) -> Ticket {
        self.issued += 1;
        let number = self.issued;
        self.queue(lane).insert(number, slot);
        Ticket { lane, number }
    }

    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.queue(ticket.lane).remove(&ticket.number);
    }

    /// Who is next of those that have something to do.
    pub(crate) fn next(&mut self) -> Option<Slot> {
        let lanes = if self.turn_of_again { [&self.again, &self.fresh] } else { [&self.fresh, &self.again] };
        let next = lanes.into_iter().find_map(|lane| lane.values().next().copied());
        self.turn_of_again = !self.turn_of_again;
        next
    }

    /// Who is next of those that only want to look.
    pub(crate) fn next_look(&self) -> Option<Slot> {
        self.looks.values().next().copied()
    }

    /// Whether something other than looking could begin.
    pub(crate) fn is_idle(&self) -> bool {
        self.fresh.is_empty() && self.again.is_empty()
    }

    fn queue(&mut self, lane: Lane) -> &mut BTreeMap<u64, Slot> {
        match lane {
            Lane::Fresh => &mut self.fresh,
            Lane::Again => &mut self.again,
            Lane::Look => &mut self.looks,
        }
    }
}

#[cfg(test)]
impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.again.len() + self.looks.len()
    }
}
