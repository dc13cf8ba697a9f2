//! What is agreed for the objects of a kind.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use nimbus_core::Kind;

/// In which order objects of a kind that come together with removals of the same kind are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Replace {
    /// In any order. An object that was deleted and created again is removed first.
    #[default]
    Independent,
    /// The new ones first: what was removed in one transaction stays until everything that came with it is applied, also
    /// if that fails. An object that was deleted and created again is applied over the old one and not removed.
    MakeBeforeBreak,
    /// The old ones first: what came in one transaction waits until everything that was removed with it is gone, except
    /// for what others still need.
    BreakBeforeMake,
}

/// What is agreed for the objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) replace: Replace,
    /// How often to look whether the machine still is as it was left; `None` for never.
    pub(crate) observe_every: Option<Duration>,
    /// A call that takes longer is worth telling.
    pub(crate) stuck_after: Duration,
}

/// The policies of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    default: Arc<Policy>,
    kinds: HashMap<Kind, Arc<Policy>>,
    /// `None` for all of them.
    handled: Option<BTreeSet<Kind>>,
}

/// Most calls take milliseconds, and what waits for a network gives up after a few seconds.
const STUCK_AFTER: Duration = Duration::from_secs(10);

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self { replace: Replace::default(), observe_every: None, stuck_after: STUCK_AFTER }
    }
}

// === impl Policies ===

impl Policies {
    /// `handled` are the kinds that this agent makes true. No reference to another kind ever orders anything here.
    pub(crate) fn new(default: Policy, kinds: BTreeMap<Kind, Policy>, handled: BTreeSet<Kind>) -> Self {
        let kinds = kinds.into_iter().map(|(kind, policy)| (kind, Arc::new(policy))).collect();
        Self { default: Arc::new(default), kinds, handled: Some(handled) }
    }

    /// Of one kind.
    pub(crate) fn of(&self, kind: &Kind) -> &Arc<Policy> {
        self.kinds.get(kind).unwrap_or(&self.default)
    }

    /// Whether references to objects of this kind order anything: nobody can wait for what is never applied here.
    pub(crate) fn orders(&self, kind: &Kind) -> bool {
        self.handled.as_ref().is_none_or(|handled| handled.contains(kind))
    }
}
