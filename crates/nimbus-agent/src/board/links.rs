//! Who needs whom, in both directions.

use std::sync::Arc;

use nimbus_client::Item;
use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::board::{
    Board,
    node::{Hold, Node},
    slots::Slot,
};

// === impl Board ===

impl Board {
    /// The node of a key; a new one, if there is none.
    pub(crate) fn enter(&mut self, key: &ObjectKey, now: Instant) -> Slot {
        self.nodes.find(key).unwrap_or_else(|| {
            let policy = self.policies.of(key.kind()).clone();
            self.nodes.insert(Node::new(key.clone(), policy, now))
        })
    }

    /// Brings the links of a node up to date after what should be here, or what is here, has changed.
    pub(crate) fn link(&mut self, slot: Slot, now: Instant) {
        self.link_needs(slot, now);
        self.link_holds(slot, now);
    }

    fn link_needs(&mut self, slot: Slot, now: Instant) {
        let desired = self.nodes[slot].desired.clone();
        let needs = self.referents(slot, desired.iter(), now);
        let old = std::mem::replace(&mut self.nodes[slot].needs, needs.clone());
        if old == needs {
            return;
        }
        for gone in old.iter().filter(|on| needs.binary_search(on).is_err()) {
            self.nodes[*gone].needed_by.remove(&slot);
            self.mark(*gone);
        }
        for on in &needs {
            self.nodes[*on].needed_by.insert(slot);
        }
        let missing = needs.iter().filter(|on| !self.nodes[**on].good).count();
        let node = &mut self.nodes[slot];
        (node.missing, node.grown) = (missing, true);
        self.mark(slot);
    }

    fn link_holds(&mut self, slot: Slot, now: Instant) {
        let node = &self.nodes[slot];
        let here: Vec<_> = node.applied.iter().chain(&node.begun).cloned().collect();
        let stays = node.stays();
        let referents = self.referents(slot, here.iter(), now);
        let needs = &self.nodes[slot].needs;
        let keeps = |on: Slot| stays && needs.binary_search(&on).is_ok();
        let holds: Vec<_> = referents.into_iter().map(|on| Hold { on, keeps: keeps(on) }).collect();
        if self.nodes[slot].holds == holds {
            return;
        }
        let old = std::mem::replace(&mut self.nodes[slot].holds, holds.clone());
        for hold in &old {
            let held = &mut self.nodes[hold.on];
            held.keepers -= usize::from(hold.keeps);
            if holds.binary_search_by_key(&hold.on, |hold| hold.on).is_err() {
                held.held_by.remove(&slot);
            }
        }
        for hold in &holds {
            let held = &mut self.nodes[hold.on];
            held.keepers += usize::from(hold.keeps);
            held.grown |= held.held_by.insert(slot);
        }
        for hold in old.iter().chain(&holds) {
            self.mark(hold.on);
        }
    }

    /// What these items need, of what can be waited for: each once, in the order of the slots.
    fn referents<'a>(&mut self, slot: Slot, items: impl Iterator<Item = &'a Arc<Item>>, now: Instant) -> Vec<Slot> {
        let mut slots = Vec::new();
        for key in items.flat_map(|item| item.needs()) {
            if self.policies.orders(key.kind()) {
                slots.push(self.enter(key, now));
            }
        }
        slots.retain(|on| *on != slot);
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}
