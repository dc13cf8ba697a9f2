//! Where the entries are.

use std::ops::{Index, IndexMut};

/// The place of an entry. It may be given to another key after the entry is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u32);

/// All entries, by place.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<Slot>,
}

/// Room for fewer entries is not worth giving back.
const KEPT: usize = 1024;

// === impl Slot ===

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl Slots ===

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    pub(crate) fn insert(&mut self, entry: T) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            Slot(u32::try_from(self.places.len() - 1).expect("memory ends before 2³² entries"))
        });
        self.places[slot.index()] = Some(entry);
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> T {
        self.free.push(slot);
        self.places[slot.index()].take().expect("whoever has a slot is linked to its entry")
    }

    /// Gives memory back after the last of many entries has gone. Says whether it did.
    pub(crate) fn shrink(&mut self) -> bool {
        let shrinks = self.len() == 0 && self.places.len() > KEPT;
        if shrinks {
            *self = Self::new();
        }
        shrinks
    }
}

impl<T> Index<Slot> for Slots<T> {
    type Output = T;

    fn index(&self, slot: Slot) -> &T {
        self.places[slot.index()].as_ref().expect("whoever has a slot is linked to its entry")
    }
}

impl<T> IndexMut<Slot> for Slots<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        self.places[slot.index()].as_mut().expect("whoever has a slot is linked to its entry")
    }
}
