//! What the bus answers, in the words of the command.

use std::{error::Error, io};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::failure::{Exit, Failure};

/// How the bus ends a message that says what to do.
const HINT: &str = " (hint: ";

/// How the bus says whose an object is.
const OWNED: &str = "it belongs to publisher ";

// === impl Failure ===

impl Failure {
    /// Takes over what a bus at `address` answered, or why it did not.
    pub(crate) fn from_status(status: Status, address: &str) -> Self {
        if let Some(reason) = transport_failure(&status) {
            return unreachable(address, &reason);
        }
        let details = status.get_error_details();
        let (message, hint) = match worded(&status, &details) {
            Some(text) => split(&text),
            None => split(status.message()),
        };
        let hint = own_hint(&message, status.code()).or(hint);
        Self { exit: exit(&status, &details), message, hint, status: Some(Box::new(status)) }
    }

    /// Nobody answered in time.
    pub(crate) fn timed_out(address: &str, seconds: f64) -> Self {
        Self::new(Exit::TimedOut, format!("no answer from the bus at {address} within {seconds} s"))
            .hint("is it busy, or a long way off? --timeout waits longer")
    }
}

/// Why an answer that goes on broke off, in a few words. What the transport says of it helps nobody.
pub(crate) fn loss(status: &Status) -> String {
    if status.source().is_some() {
        return "the bus went away".to_owned();
    }
    status.message().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn unreachable(address: &str, reason: &str) -> Failure {
    Failure::new(Exit::Unreachable, format!("cannot reach a bus at {address}: {reason}"))
        .hint("start one with `nimbus serve`, or name another with --server")
}

/// Why the connection failed, if that is why there is no answer.
fn transport_failure(status: &Status) -> Option<String> {
    let mut error = status.source()?;
    let mut failed = false;
    loop {
        failed |= error.is::<tonic::transport::Error>();
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(plain(io));
        }
        match error.source() {
            Some(cause) => error = cause,
            None => return failed.then(|| error.to_string()),
        }
    }
}

/// The words of the standard library without the number of the system, if it has words.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::Other => error.to_string(),
        kind if error.raw_os_error().is_some() => kind.to_string(),
        _ => error.to_string(),
    }
}

fn exit(status: &Status, details: &ErrorDetails) -> Exit {
    let reason = details.error_info().map_or("", |info| &info.reason);
    match status.code() {
        Code::NotFound => Exit::NotFound,
        Code::InvalidArgument | Code::OutOfRange => Exit::Invalid,
        Code::FailedPrecondition | Code::AlreadyExists | Code::Aborted => Exit::Conflict,
        Code::Unavailable if reason == "STORE_FAILED" => Exit::Failed,
        Code::Unavailable => Exit::Unreachable,
        Code::DeadlineExceeded => Exit::TimedOut,
        _ => Exit::Failed,
    }
}

/// What was refused, without the path in a request that the user has not written.
fn worded(status: &Status, details: &ErrorDetails) -> Option<String> {
    if let Some(violation) = details.precondition_failure().and_then(|failure| failure.violations.first()) {
        return Some(format!("{}: {}", violation.subject, violation.description));
    }
    let violation = details.bad_request().and_then(|request| request.field_violations.first())?;
    let rest = status.message().strip_prefix(&violation.field)?.strip_prefix(": ")?;
    // Within an object, the field is one that the user has written.
    let inside = violation.field.split_once("].").and_then(|(_, field)| field.split_once('.'));
    Some(inside.map_or_else(|| rest.to_owned(), |(_, field)| format!("{field}: {rest}")))
}

/// The flags of this command, where the bus speaks of fields of its own.
fn own_hint(message: &str, code: Code) -> Option<String> {
    if let Some((_, owner)) = message.split_once(OWNED) {
        return Some(format!("--publisher {owner} acts in its name, --take-over makes the object yours"));
    }
    match code {
        Code::Unimplemented => Some("is the bus older than this command?".to_owned()),
        Code::PermissionDenied => Some("--identity says who you are; --publisher must be the same".to_owned()),
        _ => None,
    }
}

/// Tells a message from the hint at its end.
fn split(text: &str) -> (String, Option<String>) {
    match text.strip_suffix(')').and_then(|text| text.rsplit_once(HINT)) {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (text.to_owned(), None),
    }
}
