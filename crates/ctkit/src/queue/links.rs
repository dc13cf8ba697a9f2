//! Lists of slots that a slot can leave from the middle.

use crate::queue::slots::Slot;

/// The first and the last of a list. Each slot is in one list at most of those that share their [`Links`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct List {
    head: Option<Slot>,
    tail: Option<Slot>,
}

/// The neighbours of each slot, by its index.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

#[derive(Debug, Clone, Copy, Default)]
struct Link {
    before: Option<Slot>,
    after: Option<Slot>,
}

// === impl List ===

impl List {
    pub(crate) fn first(&self) -> Option<Slot> {
        self.head
    }
}

// === impl Links ===

impl Links {
    /// The one after this in its list.
    pub(crate) fn after(&self, slot: Slot) -> Option<Slot> {
        self.0[slot.index()].after
    }

    /// Puts a slot that is in none of the lists at the end of this one.
    pub(crate) fn push(&mut self, list: &mut List, slot: Slot) {
        if slot.index() >= self.0.len() {
            self.0.resize(slot.index() + 1, Link::default());
        }
        self.0[slot.index()] = Link { before: list.tail, after: None };
        match list.tail.replace(slot) {
            Some(last) => self.0[last.index()].after = Some(slot),
            None => list.head = Some(slot),
        }
    }

    /// Takes a slot out of the list that it is in.
    pub(crate) fn remove(&mut self, list: &mut List, slot: Slot) {
        let Link { before, after } = self.0[slot.index()];
        match before {
            Some(before) => self.0[before.index()].after = after,
            None => list.head = after,
        }
        match after {
            Some(after) => self.0[after.index()].before = before,
            None => list.tail = before,
        }
    }

    /// Gives memory back when all lists are empty.
    pub(crate) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
