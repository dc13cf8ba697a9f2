//! What reactors have noted.

use std::sync::Arc;

use parking_lot::Mutex;

/// What reactors have noted, in order. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

// === impl Log ===

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    /// What was noted since the last time that this was asked.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}
