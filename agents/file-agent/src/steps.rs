//! The moments at which an agent may be killed.

use std::io;
#[cfg(test)]
use std::sync::Arc;

/// A moment between two changes to the machine. Whatever happens there, the next call must come to a good end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The ledger says what is going to be done.
    Intended,
    /// The staged file exists, and is empty.
    Created,
    /// The staged file is complete.
    Staged,
    /// The new file is in place.
    Switched,
    /// What the object had elsewhere is gone.
    Tidied,
    /// The reload has succeeded; the ledger does not say so yet.
    Reloaded,
    /// The file of a removed object is gone; the ledger does not say so yet.
    Removed,
}

/// Where tests look in, and break things. Nothing at all otherwise.
#[derive(Clone, Default)]
pub(crate) struct Steps {
    #[cfg(test)]
    pub(crate) on: Option<Arc<dyn Fn(Step) -> io::Result<()> + Send + Sync>>,
}

// === impl Steps ===

impl Steps {
    /// Says that a moment has come.
    #[cfg_attr(not(test), allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests break things here"))]
    pub(crate) fn reached(&self, step: Step) -> io::Result<()> {
        #[cfg(test)]
        if let Some(on) = &self.on {
            on(step)?;
        }
        let _ = step;
        Ok(())
    }
}
