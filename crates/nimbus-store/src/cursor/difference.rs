//! The difference between two scopes, for a reader that changes from one to the other.

use std::{collections::HashMap, sync::Arc};

use nimbus_core::{ObjectKey, Revision};

use crate::{
    cursor::reading::{Reading, View},
    group::Group,
    record::{Grave, Slot},
};

/// What leads a reader that holds the old scope at `at` to the new scope as it is now.
pub(crate) fn difference(at: Revision, old: &View, new: &View, reading: &Reading, frame_bytes: usize) -> Group {
    // What the reader holds: at which revision, if that is certain, and what to bury it with.
    let mut held: HashMap<ObjectKey, (Option<Revision>, Arc<Grave>)> = HashMap::new();
    let slot = |seq: usize| Slot { revision: new.state.head, seq: u32::try_from(seq).unwrap_or(u32::MAX) };
    for lane in old.lanes() {
        for grave in lane.ended_after(at) {
            let ended = Grave {
                key: grave.key.clone(),
                uid: grave.uid.clone(),
                slot: slot(held.len()),
                since: grave.since,
                refs: grave.refs.clone(),
                out_of_scope: new.state.get(&grave.key).is_some(),
            };
            held.insert(grave.key.clone(), (None, Arc::new(ended)));
        }
    }
    for record in old.records() {
        let unchanged = (record.revision() <= at).then_some(record.revision());
        let key = record.to_key();
        let out_of_scope = new.state.get(&key).is_some();
        let grave = record.grave(&key, slot(held.len()), record.revision(), out_of_scope);
        held.insert(key, (unchanged, grave));
    }
    let mut puts = Vec::new();
    for record in new.records() {
        let had = held.remove(&record.to_key());
        if had.is_none_or(|(revision, _)| revision != Some(record.revision())) {
            puts.push(record.clone());
        }
    }
    puts.sort_by_key(|record| record.slot());
    let removals = held.into_values().map(|(_, grave)| grave).collect();
    Group::new(puts, removals, reading.scope.is_observer(), frame_bytes)
}
