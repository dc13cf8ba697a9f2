//! Errors as callers see them: a code, a sentence, and details that programs can read.

use std::{collections::HashMap, time::Duration};

use nimbus_core::Invalid;
use nimbus_store::{Lost, Reason, Refused};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The domain of our reasons in `google.rpc.ErrorInfo`.
const DOMAIN: &str = "nimbus.v1";

/// A field of the request that is not as it should be.
pub(crate) fn field(path: &str, error: &Invalid) -> Status {
    bad(path, error.to_string())
}

/// The same, in our own words.
pub(crate) fn bad(path: &str, expected: impl Into<String>) -> Status {
    let expected = expected.into();
    let details = ErrorDetails::with_bad_request_violation(path, &expected);
    Status::with_error_details(Code::InvalidArgument, format!("{path}: {expected}"), details)
}

/// A field of a spec, at that path, that is not as it should be.
pub(crate) fn in_spec(path: &str, reason: &Reason) -> Status {
    let (path, reason) = match reason {
        Reason::Field { field, reason } => (format!("{path}.{field}"), &**reason),
        reason => (path.to_owned(), reason),
    };
    let expected = reason.to_string();
    let mut details = ErrorDetails::with_bad_request_violation(&path, &expected);
    set_limit(&mut details, reason);
    Status::with_error_details(Code::InvalidArgument, format!("{path}: {expected}"), details)
}

/// Names the limit, if it is one.
fn set_limit(details: &mut ErrorDetails, reason: &Reason) {
    if let Some(limit) = reason.limit() {
        details.set_error_info("LIMIT", DOMAIN, HashMap::from([("limit".to_owned(), limit.to_owned())]));
    }
}

/// A limit that was reached.
pub(crate) fn full(limit: &'static str, message: String) -> Status {
    let mut details = ErrorDetails::with_quota_failure_violation(limit, &message);
    details.set_error_info("LIMIT", DOMAIN, HashMap::from([("limit".to_owned(), limit.to_owned())]));
    Status::with_error_details(Code::ResourceExhausted, message, details)
}

/// Not now, but after this long.
pub(crate) fn later(message: impl Into<String>, after: Duration) -> Status {
    let details = ErrorDetails::with_retry_info(Some(after));
    Status::with_error_details(Code::Unavailable, message, details)
}

/// The disk has failed. Whoever asks again asks in vain until the bus is restarted, but need not know that.
pub(crate) fn lost(lost: &Lost) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info("STORE_FAILED", DOMAIN, HashMap::new());
    Status::with_error_details(Code::Unavailable, lost.to_string(), details)
}

/// A session that is over for a reason that the agent should know.
pub(crate) fn superseded(newer: u64) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info("SUPERSEDED", DOMAIN, HashMap::from([("session".to_owned(), format!("{newer:016x}"))]));
    let message = format!("a newer session ({newer:016x}) of the same agent has taken over");
    Status::with_error_details(Code::Aborted, message, details)
}

/// A transaction that was refused; `path` names the list of operations in the request.
pub(crate) fn refused(refused: &Refused, path: &str) -> Status {
    let message = refused.to_string();
    match refused {
        Refused::Step { step, key, reason } => {
            let (mut at, subject) = (format!("{path}[{step}]"), key.to_string());
            let mut reason = reason;
            if let Reason::Field { field, reason: inner } = reason {
                let object = if path == "ops" { ".upsert" } else { "" };
                (at, reason) = (format!("{at}{object}.spec.{field}"), inner);
            }
            let mut details = ErrorDetails::new();
            details.set_resource_info(key.kind().as_str(), &subject, "", reason.to_string());
            let code = match reason {
                Reason::Precondition { field, .. } => {
                    details.add_precondition_failure_violation(*field, &subject, reason.to_string());
                    Code::FailedPrecondition
                }
                Reason::Foreign(_) => precondition(&mut details, "manager", &subject, reason),
                Reason::StaleGeneration { .. } | Reason::SameGeneration(_) | Reason::ObservedAhead { .. } => {
                    precondition(&mut details, "generation", &subject, reason)
                }
                Reason::Deleting(_) | Reason::Unfinished(_) => {
                    precondition(&mut details, "finalizers", &subject, reason)
                }
                Reason::NoSuchObject => Code::NotFound,
                _ => {
                    details.add_bad_request_violation(&at, reason.to_string());
                    set_limit(&mut details, reason);
                    Code::InvalidArgument
                }
            };
            Status::with_error_details(code, format!("{at}: {key}: {reason}"), details)
        }
        Refused::Fenced { publisher, .. } => {
            let details = ErrorDetails::with_precondition_failure_violation("fence", publisher.as_str(), &message);
            Status::with_error_details(Code::FailedPrecondition, message, details)
        }
        Refused::LeaseLost { lease, current, .. } => {
            let mut details = ErrorDetails::with_precondition_failure_violation("lease", &**lease, &message);
            let mut metadata = HashMap::from([("lease".to_owned(), lease.to_string())]);
            if let Some(current) = current {
                metadata.insert("holder".to_owned(), current.holder.to_string());
                metadata.insert("token".to_owned(), current.token.to_string());
            }
            details.set_error_info("LEASE_LOST", DOMAIN, metadata);
            Status::with_error_details(Code::FailedPrecondition, message, details)
        }
        Refused::Full { limit, .. } => full(limit, message),
        Refused::Lost(failure) => lost(failure),
        Refused::NoSync(_) => Status::aborted(message),
        Refused::NotCovered { .. } => bad(path, message),
        _ => Status::failed_precondition(message),
    }
}

fn precondition(details: &mut ErrorDetails, field: &str, subject: &str, reason: &Reason) -> Code {
    details.add_precondition_failure_violation(field, subject, reason.to_string());
    Code::FailedPrecondition
}
