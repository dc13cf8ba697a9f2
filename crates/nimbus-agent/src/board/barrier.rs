//! Puts and removals of a kind that came together, and of which one side goes first.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::{policy::Replace, slots::Slot};

/// One group of changes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(u64);

/// All groups in which one side still waits for the other. Each member is in one group, and is written down once.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    groups: BTreeMap<GroupId, Group>,
    issued: u64,
    /// Groups in which the last that held the others up has gone.
    opened: BTreeSet<GroupId>,
}

#[derive(Debug)]
struct Group {
    order: Replace,
    puts: BTreeSet<Slot>,
    deletes: BTreeSet<Slot>,
    /// The members that hold the other side up: with make-before-break all puts, else the deletes that can go on.
    holding: BTreeSet<Slot>,
}

// === impl Barriers ===

impl Barriers {
    /// Notes a group. No side may be empty, and nobody may be in two groups.
    pub(crate) fn add(&mut self, order: Replace, puts: BTreeSet<Slot>, deletes: BTreeSet<Slot>) -> GroupId {
        self.issued += 1;
        let id = GroupId(self.issued);
        let holding = if order == Replace::MakeBeforeBreak { puts.clone() } else { BTreeSet::new() };
        self.groups.insert(id, Group { order, puts, deletes, holding });
        id
    }

    /// Whether this member has to wait for the other side.
    pub(crate) fn holds_up(&self, id: GroupId, slot: Slot) -> bool {
        let Some(group) = self.groups.get(&id) else { return false };
        let waits = if group.order == Replace::MakeBeforeBreak { &group.deletes } else { &group.puts };
        !group.holding.is_empty() && waits.contains(&slot)
    }

    /// Those that this member waits for.
    pub(crate) fn holding(&self, id: GroupId) -> impl Iterator<Item = Slot> {
        self.groups.get(&id).into_iter().flat_map(|group| group.holding.iter().copied())
    }

    /// Says of a removal whether it can go on by itself: only then do others wait for it.
    pub(crate) fn set_moving(&mut self, id: GroupId, slot: Slot, moving: bool) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.order != Replace::BreakBeforeMake || !group.deletes.contains(&slot) {
            return;
        }
        if moving {
            group.holding.insert(slot);
        } else if group.holding.remove(&slot) && group.holding.is_empty() {
            self.opened.insert(id);
        }
    }

    /// A member is done, or wants something else now.
    pub(crate) fn leave(&mut self, id: GroupId, slot: Slot) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.puts.remove(&slot);
        group.deletes.remove(&slot);
        let last = group.holding.remove(&slot) && group.holding.is_empty();
        if last || group.puts.is_empty() || group.deletes.is_empty() {
            self.opened.insert(id);
        }
    }

    /// Lets everybody go. Order within a group is worth less than an end.
    pub(crate) fn disband(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.holding.clear();
        group.order = Replace::Independent;
        self.opened.insert(id);
    }

    /// Those that may not have to wait any longer. Asked at the end of an event: within one, the last removal of a group
    /// may go and the next become possible.
    pub(crate) fn open(&mut self) -> Vec<Slot> {
        let mut free = Vec::new();
        while let Some(id) = self.opened.pop_first() {
            let Some(group) = self.groups.get(&id) else { continue };
            if group.puts.is_empty() || group.deletes.is_empty() || group.order == Replace::Independent {
                let group = self.groups.remove(&id).expect("it was just there");
                free.extend(group.puts.into_iter().chain(group.deletes));
            } else if group.holding.is_empty() {
                free.extend(&group.puts);
            }
        }
        free
    }

    /// Whether there is such a group.
    pub(crate) fn contains(&self, id: GroupId) -> bool {
        self.groups.contains_key(&id)
    }
}

#[cfg(test)]
impl Barriers {
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }
}
