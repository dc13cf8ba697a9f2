//! Views as they are written down, and made again from that.

use std::{collections::HashMap, sync::Arc};

use nimbus_core::{ObjectKey, Selector};

use crate::{
    lane::Address,
    record::{Grave, Record, Slot},
    unsaved::Graves,
    view::{Effects, Entry, Seats, View, entry::place_of, shared_address},
};

// === impl View ===

impl View {
    /// An object and its places in the lanes.
    pub(crate) fn entry(&self, key: &ObjectKey) -> Option<&Entry> {
        self.entries.get(place_of(key))
    }

    /// The tombstones of an end that was just made, in these lanes.
    pub(crate) fn graves(&self, slot: Slot, lanes: &[Address]) -> Graves {
        let grave = |address: &Address| Some((address.clone(), self.lane(address)?.grave(slot)?.clone()));
        lanes.iter().filter_map(grave).collect()
    }

    /// Puts the object of that name where it was, and says which selectors had no lane before.
    pub(crate) fn restore(&mut self, key: &ObjectKey, entry: Entry) -> Vec<Selector> {
        let mut effects = Effects::default();
        let record = &entry.record;
        self.edit(&Address::Observers, &mut effects, |lane| lane.insert(key, record));
        match entry.seats() {
            Seats::Shared(_) => {
                self.edit(&shared_address(record.audience()), &mut effects, |lane| lane.insert(key, record));
            }
            Seats::Named(seats) => {
                // Agents that were sent the object together share what they were sent.
                let mut sent: HashMap<Slot, Arc<Record>> = HashMap::new();
                for seat in seats.iter() {
                    let bare = sent.entry(seat.slot).or_insert_with(|| record.sent_at(seat.slot));
                    self.edit(&Address::Agent(seat.agent.clone()), &mut effects, |lane| lane.insert(key, bare));
                }
            }
        }
        self.entries.insert(entry);
        effects.opened
    }

    /// Puts a tombstone where it was, unless the name lives again there: then nobody sees it. They come in the order in
    /// which they were made, after all objects.
    pub(crate) fn restore_grave(&mut self, address: &Address, grave: Arc<Grave>) -> Vec<Selector> {
        let mut effects = Effects::default();
        let lives = self.entry(&grave.key).is_some_and(|entry| {
            *address == Address::Observers || entry.places().iter().any(|(place, ..)| place == address)
        });
        if !lives {
            self.edit(address, &mut effects, |lane| lane.bury_again(grave));
        }
        effects.opened
    }
}
