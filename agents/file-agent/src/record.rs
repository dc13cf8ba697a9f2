//! What the agent has done, or is about to do, for one object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{path::FilePath, root::Found, stamp::Stamp};

/// What the agent has done, or is about to do, for one object. Written before the machine is touched.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    /// One file, and during a move the one that it replaces.
    pub(crate) files: BTreeMap<FilePath, Claim>,
    /// A file has changed, or is about to, and the reload has not succeeded since.
    pub(crate) reload_pending: bool,
}

/// What is known of a path that an object has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// What was put there. The path is the object's from then on.
    pub(crate) applied: Option<Stamp>,
    /// What is being put there. If it is found there, it was put there.
    pub(crate) intended: Option<Stamp>,
}

// === impl Record ===

impl Record {
    /// Whether what was found at the path is the object's, to be replaced and removed.
    pub(crate) fn owns(&self, path: &FilePath, found: &Found) -> bool {
        self.files.get(path).is_some_and(|claim| match (claim, found) {
            (Claim { applied: Some(_), .. }, _) => true,
            (Claim { intended: Some(intended), .. }, Found::File(found)) => intended == found,
            _ => false,
        })
    }

    /// The same with the intention to put a file there.
    #[must_use]
    pub(crate) fn intending(&self, path: &FilePath, stamp: &Stamp, reload: bool) -> Self {
        let mut record = self.clone();
        record.files.entry(path.clone()).or_default().intended = Some(stamp.clone());
        record.reload_pending |= reload;
        record
    }

    /// The same with the file in place.
    #[must_use]
    pub(crate) fn applied(&self, path: &FilePath, stamp: &Stamp) -> Self {
        let mut record = self.clone();
        record.files.insert(path.clone(), Claim { applied: Some(stamp.clone()), intended: None });
        record
    }

    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
