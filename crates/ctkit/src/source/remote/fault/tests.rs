//! Every way in which a call fails, and what the kit makes of it.

use std::collections::HashMap;

use nimbus_core::{Kind, ObjectKey};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::commit;
use crate::source::CommitError;

const MESSAGE: &str = "what the bus says";

fn key() -> ObjectKey {
    ObjectKey::new(Kind::new("t.v1.Alpha").unwrap(), "ns", "a").unwrap()
}

fn about(key: &ObjectKey) -> ErrorDetails {
    ErrorDetails::with_resource_info(key.kind().as_str(), key.to_string(), "", "")
}

fn check(code: Code, details: ErrorDetails, expected: &CommitError) {
    assert_eq!(&commit(&Status::with_error_details(code, MESSAGE, details)), expected, "{code:?}");
}

fn invalid(key: Option<ObjectKey>) -> CommitError {
    CommitError::Invalid { key, message: MESSAGE.to_owned() }
}

fn unavailable() -> CommitError {
    CommitError::Unavailable(MESSAGE.to_owned())
}

#[test]
fn a_precondition_that_does_not_hold_is_a_conflict() {
    for field in ["absent", "uid", "revision", "generation", "deleting", "of a later bus"] {
        let mut details = about(&key());
        details.add_precondition_failure_violation(field, key().to_string(), "");
        check(Code::FailedPrecondition, details, &CommitError::Conflict { key: key(), message: MESSAGE.to_owned() });
    }
}

#[test]
fn an_object_of_another_publisher_is_foreign() {
    let mut details = about(&key());
    details.add_precondition_failure_violation("manager", key().to_string(), "");
    check(Code::FailedPrecondition, details, &CommitError::Foreign { key: key(), message: MESSAGE.to_owned() });
}

#[test]
fn a_fence_and_a_lost_lease_stop_the_writer_whatever_object_is_named() {
    for field in ["fence", "lease"] {
        for mut details in [ErrorDetails::new(), about(&key())] {
            details.add_precondition_failure_violation(field, "controller", "");
            check(Code::FailedPrecondition, details, &CommitError::Fenced(MESSAGE.to_owned()));
        }
    }
}

#[test]
fn a_precondition_on_nothing_is_a_wrong_request() {
    check(Code::FailedPrecondition, ErrorDetails::new(), &invalid(None));
}

#[test]
fn what_is_not_found_is_named_if_it_is_an_object() {
    check(Code::NotFound, about(&key()), &CommitError::NotFound(key()));
    check(Code::NotFound, ErrorDetails::new(), &invalid(None));
}

#[test]
fn a_limit_on_requests_is_not_tried_again_and_one_on_what_there_is_is() {
    let limit = |name: &str| {
        let metadata = HashMap::from([("limit".to_owned(), name.to_owned())]);
        ErrorDetails::with_error_info("LIMIT", "nimbus.v1", metadata)
    };
    check(Code::ResourceExhausted, limit("message_bytes"), &invalid(None));
    check(Code::ResourceExhausted, limit("ops"), &invalid(None));
    check(Code::ResourceExhausted, limit("objects"), &unavailable());
    check(Code::ResourceExhausted, limit("bytes"), &unavailable());
    check(Code::ResourceExhausted, ErrorDetails::new(), &unavailable());
}

#[test]
fn every_other_code_is_either_wrong_or_tried_again() {
    for code in [
        Code::InvalidArgument,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::Unauthenticated,
        Code::Unimplemented,
        Code::OutOfRange,
    ] {
        check(code, ErrorDetails::new(), &invalid(None));
        check(code, about(&key()), &invalid(Some(key())));
    }
    for code in [
        Code::Cancelled,
        Code::Unknown,
        Code::DeadlineExceeded,
        Code::Aborted,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
    ] {
        check(code, ErrorDetails::new(), &unavailable());
        check(code, about(&key()), &unavailable());
    }
}

#[test]
fn an_object_is_read_from_details_with_and_without_a_namespace() {
    let plain = ObjectKey::new(Kind::new("t.v1.Alpha").unwrap(), "", "a").unwrap();
    check(Code::NotFound, about(&plain), &CommitError::NotFound(plain.clone()));
    check(Code::NotFound, about(&key()), &CommitError::NotFound(key()));
    for name in ["", "t.v1.Alpha", "t.v1.Alpha/", "t.v1.Beta/a", "t.v1.Alpha/a/b/c", "a"] {
        let details = ErrorDetails::with_resource_info("t.v1.Alpha", name, "", "");
        check(Code::NotFound, details, &invalid(None));
    }
}
