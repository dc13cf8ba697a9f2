//! What the kit does about a transaction that a collection refused.

use nimbus_store::{Reason, Refused};

use crate::source::CommitError;

impl From<Refused> for CommitError {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::Step { key, reason, .. } => {
                let message = reason.to_string();
                match reason {
                    Reason::Precondition { .. }
                    | Reason::StaleGeneration { .. }
                    | Reason::ObservedAhead { .. }
                    | Reason::Deleting(_) => Self::Conflict { key, message },
                    Reason::Foreign(_) => Self::Foreign { key, message },
                    Reason::NoSuchObject => Self::NotFound(key),
                    // The same specs would be refused again: `SameGeneration`, `Cycle`, `Twice`, `TooLarge`.
                    _ => Self::Invalid { key: Some(key), message },
                }
            }
            Refused::Fenced { .. } | Refused::LeaseLost { .. } => Self::Fenced(message),
            // A transaction does not become smaller with time; of all else, somebody may delete something.
            Refused::Full { limit: "ops", .. } => Self::Invalid { key: None, message },
            Refused::Full { .. } | Refused::Lost(_) => Self::Unavailable(message),
            // Whoever syncs begins again.
            Refused::NoSync(_) => Self::Unavailable(message),
            Refused::NotCovered { key, .. } => Self::Invalid { key: Some(key), message },
            // `NotAhead`: revisions from outside do not rise by waiting.
            _ => Self::Invalid { key: None, message },
        }
    }
}

#[cfg(test)]
mod tests;
