//! Where the nodes are.

use std::{
    collections::HashMap,
    ops::{Index, IndexMut},
};

use nimbus_core::ObjectKey;

use crate::board::node::Node;

/// The place of a node. It may be given to another key after the node is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u32);

/// All nodes, by place and by key.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    places: Vec<Option<Node>>,
    free: Vec<Slot>,
    keys: HashMap<ObjectKey, Slot>,
}

// === impl Nodes ===

impl Nodes {
    pub(crate) fn find(&self, key: &ObjectKey) -> Option<Slot> {
        self.keys.get(key).copied()
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Node> {
        self.places.get(slot.0 as usize)?.as_ref()
    }

    pub(crate) fn insert(&mut self, node: Node) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            Slot(u32::try_from(self.places.len() - 1).expect("memory ends before 2³² nodes"))
        });
        self.keys.insert(node.key.clone(), slot);
        self.places[slot.0 as usize] = Some(node);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        if let Some(node) = self.places[slot.0 as usize].take() {
            self.keys.remove(&node.key);
            self.free.push(slot);
        }
    }
}

impl Index<Slot> for Nodes {
    type Output = Node;

    fn index(&self, slot: Slot) -> &Node {
        self.get(slot).expect("whoever has a slot is linked to its node")
    }
}

impl IndexMut<Slot> for Nodes {
    fn index_mut(&mut self, slot: Slot) -> &mut Node {
        self.places[slot.0 as usize].as_mut().expect("whoever has a slot is linked to its node")
    }
}

#[cfg(test)]
impl Nodes {
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let taken = self.places.iter().enumerate().filter(|(_, place)| place.is_some());
        taken.map(|(at, _)| Slot(u32::try_from(at).unwrap()))
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}
