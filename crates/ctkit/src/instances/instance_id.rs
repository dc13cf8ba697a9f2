//! The name of one instance of a controller.

use std::{fmt, sync::Arc};

/// The name of one instance of a controller.
///
/// Two that run at the same time must have different ones, and one that starts again takes a new one: whoever holds a
/// lease is known by this name alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(Arc<str>);

// === impl InstanceId ===

impl InstanceId {
    /// Takes a name, such as that of a pod.
    pub fn new(value: &str) -> Self {
        Self(value.into())
    }

    /// A name made of a random number, for those that have none.
    pub fn from_seed(seed: u64) -> Self {
        Self(format!("{seed:016x}").into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Arc<str>> for InstanceId {
    fn from(value: Arc<str>) -> Self {
        Self(value)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
