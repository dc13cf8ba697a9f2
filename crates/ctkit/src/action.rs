//! What the kit should do after a reactor returns.

use std::time::Duration;

use nimbus_core::ObjectKey;

/// What the kit should do after a reactor returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Action(pub(crate) Next);

/// What comes after a reaction that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until the object changes.
    Done,
    /// The same again after this long.
    RequeueAfter(Duration),
    /// The same again when all of these exist.
    WaitFor(Vec<ObjectKey>),
    /// The reactor has nothing to say to calls of this sort.
    Ignored,
}

// === impl Action ===

impl Action {
    /// Nothing more to do until the object changes.
    pub const fn done() -> Self {
        Self(Next::Done)
    }

    /// Look at the object again after `delay`, even if nothing changes.
    pub const fn requeue_after(delay: Duration) -> Self {
        Self(Next::RequeueAfter(delay))
    }

    /// Nothing can be done before these exist: look at the object again as soon as all of them do, or when it changes.
    ///
    /// What was published before stays, and what this call has published is not. The object counts as waiting, and says
    /// for what.
    pub fn wait_for(referents: impl IntoIterator<Item = ObjectKey>) -> Self {
        Self(Next::WaitFor(referents.into_iter().collect()))
    }

    /// What calls that a reactor does not implement return.
    pub(crate) const fn ignored() -> Self {
        Self(Next::Ignored)
    }
}
