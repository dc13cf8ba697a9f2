//! Keys that are stopped together: those of a shard.

use std::hash::{BuildHasher, Hash};

use tokio::time::Instant;

use crate::queue::{Queue, links::List, slots::Slot};

/// Keys that are stopped together: those of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(pub u16);

/// All groups, by number.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<Members>);

/// What is known of one group.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: List,
    closed: bool,
    pub(crate) running: usize,
}

// === impl Groups ===

impl Groups {
    pub(crate) fn is_closed(&self, group: Group) -> bool {
        self.0.get(usize::from(group.0)).is_some_and(|members| members.closed)
    }

    pub(crate) fn of(&mut self, group: Group) -> &mut Members {
        let index = usize::from(group.0);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Members::default);
        }
        &mut self.0[index]
    }
}

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// Hands out no key of this group until it is [opened](Queue::open_group). What is added meanwhile is kept. Costs as
    /// much as the group has entries.
    pub fn close_group(&mut self, group: Group, now: Instant) {
        self.groups.of(group).closed = true;
        self.visit(group, |queue, slot| {
            queue.settle(slot, now);
        });
    }

    /// Hands out keys of this group again.
    pub fn open_group(&mut self, group: Group, now: Instant) {
        self.groups.of(group).closed = false;
        self.visit(group, |queue, slot| {
            queue.settle(slot, now);
        });
    }

    /// Forgets all keys of this group. For those that are running, nothing comes of how that ends.
    pub fn forget_group(&mut self, group: Group, now: Instant) {
        self.visit(group, |queue, slot| queue.forget_slot(slot, now));
    }

    /// Whether the group is closed.
    pub fn is_group_closed(&self, group: Group) -> bool {
        self.groups.is_closed(group)
    }

    /// How many keys of this group are running. A closed group in which none is may be given to somebody else.
    pub fn running_in(&self, group: Group) -> usize {
        self.groups.0.get(usize::from(group.0)).map_or(0, |members| members.running)
    }

    /// Puts an entry in a group.
    pub(crate) fn join(&mut self, slot: Slot, group: Group) {
        if self.entries[slot].group == Some(group) {
            return;
        }
        self.leave(slot);
        let entry = &mut self.entries[slot];
        entry.group = Some(group);
        let members = self.groups.of(group);
        members.running += usize::from(entry.case.run.is_some());
        self.members.push(&mut members.list, slot);
    }

    /// Takes an entry out of its group.
    pub(crate) fn leave(&mut self, slot: Slot) {
        let entry = &mut self.entries[slot];
        if let Some(group) = entry.group.take() {
            let members = self.groups.of(group);
            members.running -= usize::from(entry.case.run.is_some());
            self.members.remove(&mut members.list, slot);
        }
    }

    fn visit(&mut self, group: Group, mut visit: impl FnMut(&mut Self, Slot)) {
        let mut next = self.groups.of(group).list.first();
        while let Some(slot) = next {
            // Visiting may remove this one, and no other.
            next = self.members.after(slot);
            visit(self, slot);
        }
    }
}
