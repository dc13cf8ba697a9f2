//! The one place that decides what a failed call means.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// What to do after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The bus said when to come back.
    After(Duration),
    /// Try again, after a longer while each time.
    Backoff,
    /// Somebody else runs under this subscriber's name.
    Superseded,
    /// The request itself is wrong: a human has to look.
    Refused,
}

/// What a status advises.
pub fn advise(status: &Status) -> Advice {
    let details = status.get_error_details();
    if let Some(wait) = details.retry_info().and_then(|info| info.retry_delay) {
        return Advice::After(wait);
    }
    match status.code() {
        Code::Aborted if details.error_info().is_some_and(|info| info.reason == "SUPERSEDED") => Advice::Superseded,
        Code::InvalidArgument | Code::PermissionDenied | Code::Unauthenticated | Code::Unimplemented => Advice::Refused,
        _ => Advice::Backoff,
    }
}
