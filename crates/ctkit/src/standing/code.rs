//! How an object fares, in one word.

use nimbus_wire::v1::ConditionState;

/// The type of the condition that the kit keeps.
pub(crate) const READY: &str = "Ready";

/// How an object fares, in one word that dashboards can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub(crate) enum Code {
    /// Its reactor is done with it.
    Reconciled,
    /// Its reactor failed, and will try again or wait for an edit.
    Failed,
    /// It waits for others.
    Waiting,
    /// Somebody asked to leave it alone.
    Paused,
    /// Its reactor panicked too often.
    Quarantined,
    /// It goes as soon as everybody is done.
    Deleting,
}

// === impl Code ===

impl Code {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Reconciled => "Reconciled",
            Self::Failed => "Failed",
            Self::Waiting => "Waiting",
            Self::Paused => "Paused",
            Self::Quarantined => "Quarantined",
            Self::Deleting => "Deleting",
        }
    }

    /// Only what is reconciled is ready. What is paused may be or not: nobody looks.
    pub(crate) const fn state(self) -> ConditionState {
        match self {
            Self::Reconciled => ConditionState::True,
            Self::Paused => ConditionState::Unspecified,
            Self::Failed | Self::Waiting | Self::Quarantined | Self::Deleting => ConditionState::False,
        }
    }
}
