//! The one place that decides what a failed call means to the kit.

#[cfg(test)]
mod tests;

use nimbus_core::{Kind, ObjectKey};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::source::CommitError;

/// Limits on one request: it is too large now, and will be later. All others are on what there is in all, which changes.
const OF_REQUESTS: [&str; 2] = ["message_bytes", "ops"];

/// What a failed call means to the kit.
pub(crate) fn commit(status: &Status) -> CommitError {
    let details = status.get_error_details();
    let key = object(&details);
    let message = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition => precondition(&details, key, message),
        Code::NotFound => match key {
            Some(key) => CommitError::NotFound(key),
            None => CommitError::Invalid { key, message },
        },
        Code::InvalidArgument
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Unimplemented
        | Code::OutOfRange => CommitError::Invalid { key, message },
        Code::ResourceExhausted => match limit(&details) {
            Some(limit) if OF_REQUESTS.contains(&limit) => CommitError::Invalid { key, message },
            _ => CommitError::Unavailable(message),
        },
        // Whoever loses a connection may see any of these, and does not know what came of the call.
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => CommitError::Unavailable(message),
    }
}

fn precondition(details: &ErrorDetails, key: Option<ObjectKey>, message: String) -> CommitError {
    let violations = details.precondition_failure().map_or(&[][..], |failure| &failure.violations);
    let is = |types: &[&str]| violations.iter().any(|violation| types.contains(&&*violation.r#type));
    match key {
        _ if is(&["fence", "lease"]) => CommitError::Fenced(message),
        Some(key) if is(&["manager"]) => CommitError::Foreign { key, message },
        Some(key) => CommitError::Conflict { key, message },
        None => CommitError::Invalid { key, message },
    }
}

/// The object that an error is about.
fn object(details: &ErrorDetails) -> Option<ObjectKey> {
    let info = details.resource_info()?;
    let kind = Kind::new(&info.resource_type).ok()?;
    let name = info.resource_name.strip_prefix(kind.as_str())?.strip_prefix('/')?;
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    ObjectKey::new(kind, namespace, name).ok()
}

fn limit(details: &ErrorDetails) -> Option<&str> {
    let info = details.error_info().filter(|info| info.reason == "LIMIT")?;
    info.metadata.get("limit").map(String::as_str)
}
