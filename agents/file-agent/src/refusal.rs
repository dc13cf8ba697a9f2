//! The ways to say no. Each has a code that dashboards can count, and is permanent where only another object helps.

use std::fmt;

use nimbus_agent::{Failure, ObjectKey};

/// Of failures that come from where a path leads on this machine.
pub(crate) const UNSAFE_PATH: &str = "UNSAFE_PATH";

/// The object itself makes no sense.
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(message).with_code("INVALID").permanent()
}

/// The path leads over, or to, something that this agent does not touch.
pub(crate) fn unsafe_path(path: impl fmt::Display, what: &str) -> Failure {
    Failure::new(format!("{path} is {what}, and is left alone"))
        .with_code(UNSAFE_PATH)
        .permanent()
}

/// A file that somebody else made.
pub(crate) fn not_owned(path: impl fmt::Display) -> Failure {
    let message = format!("{path} was there before and is not ours (hint: set adopt to take it over, or move it away)");
    Failure::new(message).with_code("NOT_OWNED").permanent()
}

/// A path that another object has. That one may go, so it is worth another try.
pub(crate) fn conflict(path: impl fmt::Display, owner: &ObjectKey) -> Failure {
    let message = format!("{path} belongs to {owner} (hint: two objects name the same path; delete one of them)");
    Failure::new(message).with_code("CONFLICT")
}

/// A program that the operator of this machine has not allowed.
pub(crate) fn not_allowed(program: &str) -> Failure {
    let message = format!("{program:?} may not be run here (hint: start the agent with --allow {program})");
    Failure::new(message).with_code("NOT_ALLOWED").permanent()
}

/// A new version that did not pass; the old one stays.
pub(crate) fn validation(path: impl fmt::Display, why: impl fmt::Display) -> Failure {
    Failure::new(format!("the new {path} is not put in place: {why}")).with_code("VALIDATION")
}

/// A file that nobody has taken notice of yet. Worth another try.
pub(crate) fn reload(path: impl fmt::Display, state: &str, why: impl fmt::Display) -> Failure {
    Failure::new(format!("{path} is {state}, but the reload failed: {why}")).with_code("RELOAD")
}

/// What the machine refused to do.
pub(crate) fn failed(what: impl fmt::Display, error: impl fmt::Display) -> Failure {
    Failure::new(format!("cannot {what}: {error}")).with_code("IO")
}
