//! What a subscriber is subscribed to.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::{AgentId, Kind, Labels, LeafHasher, PublisherId, ScopeHash};

use crate::{filter::Filter, record::Record};

/// What a subscriber is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// These kinds; `None` is all of them, also those to come.
    pub kinds: Option<Arc<BTreeSet<Kind>>>,
    /// Of those, the objects that pass.
    pub filter: Option<Arc<Filter>>,
    /// Of those, the objects that are for this viewer.
    pub viewer: Viewer,
}

/// Where an object that a reader holds came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The publisher that owned it.
    pub manager: PublisherId,
    /// Its kind.
    pub kind: Kind,
}

/// Who looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Viewer {
    /// Sees every object, whatever its audience, and the audience itself.
    Observer,
    /// Sees the objects that are for it.
    Agent {
        /// Its name.
        id: AgentId,
        /// What the selectors of audiences look at.
        labels: Labels,
    },
}

// === impl Scope ===

impl Scope {
    /// Everything, seen by an observer.
    pub fn everything() -> Self {
        Self { kinds: None, filter: None, viewer: Viewer::Observer }
    }

    /// A number that is the same for the same scope, in every process.
    pub fn hash(&self) -> ScopeHash {
        let mut hasher = LeafHasher::extra();
        match &self.kinds {
            None => hasher.part(b"*"),
            Some(kinds) => kinds.iter().for_each(|kind| hasher.part(kind.as_str().as_bytes())),
        }
        hasher.part(self.filter.as_ref().map(ToString::to_string).unwrap_or_default().as_bytes());
        if let Viewer::Agent { id, labels } = &self.viewer {
            hasher.part(id.as_str().as_bytes());
            for (key, value) in labels.iter() {
                hasher.part(key.as_bytes());
                hasher.part(value.as_bytes());
            }
        }
        let digest = hasher.finish();
        let bytes = digest.as_bytes()[8..16].try_into().expect("eight bytes");
        ScopeHash(u64::from_le_bytes(bytes))
    }

    /// Whether the viewer sees objects like this one. Filters on fields are not asked.
    pub fn admits(&self, record: &Record, passes: impl Fn(&Filter) -> bool) -> bool {
        self.covers(record.kind())
            && self.filter.as_deref().is_none_or(passes)
            && match &self.viewer {
                Viewer::Observer => true,
                Viewer::Agent { id, labels } => record.audience().includes(id, labels),
            }
    }

    /// Whether the kind is among those subscribed to.
    pub fn covers(&self, kind: &Kind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    /// Whether it is an observer, who sees audiences.
    pub fn is_observer(&self) -> bool {
        self.viewer == Viewer::Observer
    }
}
