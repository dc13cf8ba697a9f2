//! Why a command failed, for people and for scripts.

mod status;

#[cfg(test)]
mod tests;

use std::{fmt, io, process::ExitCode};

use tonic::Status;

pub(crate) use crate::failure::status::loss;

/// What scripts can tell apart. `nimbus --help` lists them; a number never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Nothing to complain about.
    Ok = 0,
    /// It did not work, for a reason that has no number of its own.
    Failed = 1,
    /// Wrong usage; of a command in which 1 means something else, also what has no number of its own.
    Usage = 2,
    /// No such object.
    NotFound = 3,
    /// No bus answers there.
    Unreachable = 4,
    /// The bus, or the command, refused what was asked for: an unknown kind, field or filter.
    Invalid = 5,
    /// Somebody else's object, a condition that does not hold, a finalizer.
    Conflict = 6,
    /// It did not happen in time.
    TimedOut = 7,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

/// The same for people, shown below `nimbus --help`. 2 is given by the parser of arguments; 130 and 143 also by the shell.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed
  2    wrong usage
  3    no such object
  4    the bus cannot be reached
  5    refused as invalid: an unknown kind, field or filter
  6    conflict: somebody else's object, a condition that does not hold, a finalizer
  7    not reached in time
  130  interrupted
  143  terminated";

/// Why a command failed: what happened, what to do about it, and the number that it exits with.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    /// Empty if all has been said.
    message: String,
    hint: Option<String>,
    status: Option<Box<Status>>,
}

// === impl Failure ===

impl Failure {
    /// A failure that scripts can tell by `exit`.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, status: None }
    }

    /// Input that makes no sense here.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Exit::Invalid, message)
    }

    /// Ends the command with this code; what there was to say has been said.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// What the user can do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with another code.
    #[must_use]
    pub(crate) fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// What else there is to say after it, before the hint.
    #[must_use]
    pub(crate) fn before(mut self, words: &str) -> Self {
        self.message.push_str(words);
        self
    }

    /// What else there is to say before it.
    #[must_use]
    pub(crate) fn after(mut self, words: &str) -> Self {
        self.message = format!("{words}: {}", self.message);
        self
    }

    /// The code that it is told apart by.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether it is told apart by this code.
    pub(crate) fn is(&self, exit: Exit) -> bool {
        self.exit == exit
    }

    /// What the bus answered, if it did; with details that programs can read.
    pub(crate) fn status(&self) -> Option<&Status> {
        self.status.as_deref()
    }

    /// Says it on standard error and ends the process.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            #[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
            {
                eprintln!("nimbus: {self}");
            }
        }
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(Exit::Failed, message)
    }
}

/// Whoever reads our output may stop reading, as `head` does: then there is nothing more to do, and nothing to say.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(Exit::Ok);
        }
        Self::new(Exit::Failed, format!("cannot write the output: {error}"))
    }
}
