//! What is saved and not written yet.

use std::collections::BTreeMap;

use nimbus_core::{ObjectKey, Position};

use crate::cache::{
    boot::BootId,
    image::{Image, Versions},
    memory::Delta,
};

/// The image, and what of it is not on disk.
///
/// Changes of one object are merged, so there is never more to write than there are objects, however long the disk
/// fails; and what is written is the image at one moment, so a delta is in it as a whole or not at all.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    image: Image,
    boot: Option<BootId>,
    /// Counts deltas.
    saved: u64,
    /// The last delta that is on disk.
    written: u64,
    /// Objects that are not on disk as they are in the image, with the last delta that they are in.
    dirty: BTreeMap<ObjectKey, u64>,
    closing: bool,
}

/// Something to be written at once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    /// The last delta that is in it.
    pub(crate) sequence: u64,
    pub(crate) position: Option<Position>,
    /// Without versions: to be removed.
    pub(crate) objects: Vec<(ObjectKey, Versions)>,
}

// === impl Pending ===

impl Pending {
    /// All of it is on disk.
    pub(crate) fn new(image: Image, sequence: u64, boot: Option<BootId>) -> Self {
        Self { image, boot, saved: sequence, written: sequence, ..Self::default() }
    }

    pub(crate) fn save(&mut self, delta: Delta) {
        self.saved += 1;
        let (saved, dirty) = (self.saved, &mut self.dirty);
        self.image.apply(delta, self.boot.as_ref(), |key| {
            dirty.insert(key, saved);
        });
    }

    /// Counts deltas.
    pub(crate) fn saved(&self) -> u64 {
        self.saved
    }

    pub(crate) fn has_changes(&self) -> bool {
        self.saved > self.written
    }

    /// What is not on disk.
    pub(crate) fn changes(&self) -> Batch {
        let versions = |key| self.image.objects.get(key).cloned().unwrap_or_default();
        self.batch(self.dirty.keys().map(|key| (key.clone(), versions(key))).collect())
    }

    /// All that there is.
    pub(crate) fn everything(&self) -> Batch {
        self.batch(self.image.objects.iter().map(|(key, versions)| (key.clone(), versions.clone())).collect())
    }

    fn batch(&self, objects: Vec<(ObjectKey, Versions)>) -> Batch {
        Batch { sequence: self.saved, position: self.image.position, objects }
    }

    /// A batch with this sequence is on disk.
    pub(crate) fn written(&mut self, sequence: u64) {
        self.written = sequence;
        self.dirty.retain(|_, last| *last > sequence);
    }

    /// The writer may end when everything is written.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }
}
