//! What differs between what is on disk and a state.

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey, PublisherId};

use crate::{
    lane::Address,
    record::{Grave, Slot},
};

/// What differs between what is on disk and a state. Names may be here several times: how things are now is in the
/// state, and is written once.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) objects: Vec<ObjectKey>,
    /// Ends of objects that are new, with the lanes in which they left a tombstone.
    pub(crate) buried: Vec<(Slot, Graves)>,
    /// Ends of objects that were forgotten.
    pub(crate) forgotten: Vec<Slot>,
    pub(crate) kinds: Vec<Kind>,
    /// Which instances may write; not part of a state.
    pub(crate) fences: Vec<(PublisherId, u64)>,
    pub(crate) synced: Vec<PublisherId>,
    pub(crate) extras: Vec<Arc<str>>,
    /// The horizon has moved.
    pub(crate) trimmed: bool,
    /// Bytes of what is new, nearly.
    pub(crate) bytes: usize,
}

/// The tombstones that the end of an object left, by lane.
pub(crate) type Graves = Vec<(Address, Arc<Grave>)>;

// === impl Changes ===

impl Changes {
    /// Adds what has changed after this.
    pub(crate) fn append(&mut self, later: &Self) {
        let Self { objects, buried, forgotten, kinds, fences, synced, extras, trimmed, bytes } = later;
        self.objects.extend_from_slice(objects);
        self.buried.extend_from_slice(buried);
        self.forgotten.extend_from_slice(forgotten);
        self.kinds.extend_from_slice(kinds);
        self.fences.extend_from_slice(fences);
        self.synced.extend_from_slice(synced);
        self.extras.extend_from_slice(extras);
        self.trimmed |= trimmed;
        self.bytes += bytes;
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { objects, buried, forgotten, kinds, fences, synced, extras, trimmed, bytes: _ } = self;
        objects.is_empty()
            && buried.is_empty()
            && forgotten.is_empty()
            && kinds.is_empty()
            && fences.is_empty()
            && synced.is_empty()
            && extras.is_empty()
            && !trimmed
    }
}
