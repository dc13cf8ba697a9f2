//! How a set of references differs from the one before.

use std::collections::HashSet;

use nimbus_core::Kind;

use crate::references::Ref;

/// How a set of references differs from the one before; all in order, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "kinds must be watched while somebody looks at them"]
pub(crate) struct Diff {
    /// What is looked at since now.
    pub(crate) added: Vec<Ref>,
    /// What is no longer looked at.
    pub(crate) removed: Vec<Ref>,
    /// Kinds that somebody looks at since now, and nobody did before.
    pub(crate) kinds_started: Vec<Kind>,
    /// Kinds that nobody looks at any more.
    pub(crate) kinds_stopped: Vec<Kind>,
}

// === impl Diff ===

impl Diff {
    /// The difference between two sets; what it means for kinds is still to be said.
    pub(crate) fn between(before: &HashSet<Ref>, after: &HashSet<Ref>) -> Self {
        let sorted = |one: &HashSet<Ref>, other: &HashSet<Ref>| {
            let mut refs: Vec<_> = one.difference(other).cloned().collect();
            refs.sort_unstable();
            refs
        };
        Self { added: sorted(after, before), removed: sorted(before, after), ..Self::default() }
    }
}
