//! The rows that a group of writes changes.

use std::collections::BTreeSet;

use crate::{
    durable::{
        flaw::Flaw,
        row::{encode_key, encode_kind, encode_object, encode_slot, encode_tombstone},
        table::Table,
    },
    state::State,
    unsaved::Changes,
};

/// Names each row that differs, with what is in it now (`None` if it is gone). Tables come one after the other; of a row
/// that comes twice, the last one counts.
pub(crate) fn changed_rows(
    state: &State,
    changes: &Changes,
    mut set: impl FnMut(Table, &[u8], Option<&[u8]>) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    for key in changes.objects.iter().collect::<BTreeSet<_>>() {
        let entry = state.kinds.get(key.kind()).and_then(|kind| kind.all.entry(key));
        set(Table::Objects, &encode_key(key), entry.map(encode_object).as_deref())?;
    }
    let forgotten: BTreeSet<_> = changes.forgotten.iter().collect();
    for (slot, graves) in changes.buried.iter().filter(|(slot, _)| !forgotten.contains(slot)) {
        set(Table::Tombstones, &encode_slot(*slot), encode_tombstone(graves).as_deref())?;
    }
    for slot in forgotten {
        set(Table::Tombstones, &encode_slot(*slot), None)?;
    }
    for kind in changes.kinds.iter().collect::<BTreeSet<_>>() {
        let publishers = state.kinds.get(kind).map(|kind| encode_kind(&kind.publishers));
        set(Table::Kinds, kind.as_str().as_bytes(), publishers.as_deref())?;
    }
    for (publisher, fence) in &changes.fences {
        set(Table::Fences, publisher.as_str().as_bytes(), Some(&fence.to_be_bytes()))?;
    }
    for publisher in &changes.synced {
        set(Table::Synced, publisher.as_str().as_bytes(), Some(&[]))?;
    }
    for name in changes.extras.iter().collect::<BTreeSet<_>>() {
        set(Table::Extras, name.as_bytes(), state.extras.get(name).map(|value| &**value))?;
    }
    Ok(())
}
