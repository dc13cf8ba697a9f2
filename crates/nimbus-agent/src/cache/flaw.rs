//! What can be wrong with the file.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use nimbus_core::panic_message;

/// What can be wrong with the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Flaw {
    /// Somebody else has it open.
    #[error("another process has it open")]
    Busy,
    /// The disk is full, or broken. The file may be as good as before.
    #[error(transparent)]
    Io(io::Error),
    /// redb refuses the file.
    #[error(transparent)]
    Redb(redb::Error),
    /// redb gave up on the file. It does so where it relies on what it wrote.
    #[error("redb panicked: {0}")]
    Panic(String),
    /// redb accepts the file, but it is not what this agent wrote.
    #[error("{0}")]
    Content(String),
}

// === impl Flaw ===

impl Flaw {
    /// Does something with a file that may be damaged, which may make redb panic.
    pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T, Self>) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Self::Panic(panic_message(&*panic).to_owned())))
    }
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<redb::Error> for Flaw {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen => Self::Busy,
            redb::Error::Io(error) => Self::Io(error),
            redb::Error::PreviousIo => Self::Io(io::Error::other("the disk failed before")),
            error => Self::Redb(error),
        }
    }
}

macro_rules! from_redb {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for Flaw {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )*};
}

from_redb!(CommitError, DatabaseError, StorageError, TableError, TransactionError);
