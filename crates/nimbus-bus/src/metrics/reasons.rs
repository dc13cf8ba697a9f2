//! Why transactions are refused, in one word each.

use nimbus_store::{Reason, Refused};

/// Why a transaction can be refused.
pub(super) const ALL: [&str; 12] = [
    "absent",
    "cycle",
    "fenced",
    "finalizers",
    "foreign",
    "generation",
    "invalid",
    "lease_lost",
    "limit",
    "precondition",
    "store_failed",
    "sync",
];

/// Why a transaction was refused, in one word.
pub(super) fn of(refused: &Refused) -> &'static str {
    match refused {
        Refused::Step { reason, .. } => of_step(reason),
        Refused::Fenced { .. } => "fenced",
        Refused::LeaseLost { .. } => "lease_lost",
        Refused::Full { .. } => "limit",
        Refused::NoSync(_) | Refused::NotCovered { .. } => "sync",
        Refused::Lost(_) => "store_failed",
        _ => "invalid",
    }
}

fn of_step(reason: &Reason) -> &'static str {
    match reason {
        Reason::Precondition { .. } => "precondition",
        Reason::Foreign(_) => "foreign",
        Reason::StaleGeneration { .. } | Reason::SameGeneration(_) | Reason::ObservedAhead { .. } => "generation",
        Reason::Deleting(_) | Reason::Unfinished(_) => "finalizers",
        Reason::NoSuchObject => "absent",
        Reason::Cycle(_) => "cycle",
        Reason::TooLarge { .. } => "limit",
        Reason::Field { reason, .. } => of_step(reason),
        _ => "invalid",
    }
}
