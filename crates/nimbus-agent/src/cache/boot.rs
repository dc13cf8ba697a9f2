//! One run of the machine, from power on to power off.

use std::{fmt, fs, sync::Arc};

/// Where Linux names the run. It is the host's also within containers.
const SOURCE: &str = "/proc/sys/kernel/random/boot_id";

/// One run of the machine: what is volatile does not outlive it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BootId(Arc<str>);

// === impl BootId ===

impl BootId {
    /// The run that this is; `None` where the machine does not tell.
    pub(crate) fn current() -> Option<Self> {
        Self::new(fs::read_to_string(SOURCE).ok()?.trim())
    }

    /// Takes the name of a run; `None` if it is empty.
    pub(crate) fn new(value: &str) -> Option<Self> {
        (!value.is_empty()).then(|| Self(value.into()))
    }

    /// The name as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
