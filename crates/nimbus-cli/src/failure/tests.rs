//! What scripts and people are told.

use std::{collections::HashMap, io};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::failure::{EXIT_CODES, Exit, Failure};

#[test]
fn every_exit_code_is_in_the_help() {
    use Exit::{Conflict, Failed, Invalid, NotFound, Ok, TimedOut, Unreachable};
    for exit in [Ok, Failed, NotFound, Unreachable, Invalid, Conflict, TimedOut] {
        let start = format!("  {}    ", exit as u8);
        assert!(EXIT_CODES.lines().any(|line| line.starts_with(&start)), "{exit:?}");
    }
}

#[test]
fn answers_of_the_bus_become_exit_codes_and_hints() {
    fn check(status: Status, exit: Exit, said: &str) {
        let failure = Failure::from_status(status, "here:1");
        assert_eq!((failure.exit, failure.to_string().as_str()), (exit, said));
    }

    check(Status::not_found("x/y does not exist"), Exit::NotFound, "x/y does not exist");
    check(Status::aborted("a (hint: b)"), Exit::Conflict, "a (hint: b)");
    check(Status::internal("a"), Exit::Failed, "a");
    check(Status::deadline_exceeded("a"), Exit::TimedOut, "a");
    check(Status::unavailable("draining"), Exit::Unreachable, "draining");
    check(Status::unimplemented("a"), Exit::Failed, "a (hint: is the bus older than this command?)");

    let mut details = ErrorDetails::new();
    details.set_error_info("STORE_FAILED", "nimbus.v1", HashMap::new());
    check(Status::with_error_details(Code::Unavailable, "the disk", details), Exit::Failed, "the disk");

    let belongs = "it belongs to publisher p (hint: set take_over to overwrite it)";
    let details = ErrorDetails::with_precondition_failure_violation("manager", "k/n", belongs);
    check(
        Status::with_error_details(Code::FailedPrecondition, format!("ops[0]: k/n: {belongs}"), details),
        Exit::Conflict,
        "k/n: it belongs to publisher p (hint: --publisher p acts in its name, --take-over makes the object yours)",
    );

    let bad = |path: &str| {
        let details = ErrorDetails::with_bad_request_violation(path, "something else");
        Status::with_error_details(Code::InvalidArgument, format!("{path}: something else"), details)
    };
    check(bad("filter.selector"), Exit::Invalid, "something else");
    check(bad("ops[3].upsert.labels"), Exit::Invalid, "labels: something else");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
    assert_eq!((failure.exit, failure.to_string().as_str()), (Exit::Ok, ""));
    let failure = Failure::from(io::Error::other("full"));
    assert_eq!((failure.exit, failure.to_string().as_str()), (Exit::Failed, "cannot write the output: full"));
}
