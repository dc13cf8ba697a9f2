//! Why there cannot be a memory on disk.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why there cannot be a memory on disk. A damaged file is no reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Somebody else has it.
    #[error("{path} is in use by another process (hint: does another agent run with the same path?)", path = .0.display())]
    Busy(PathBuf),
    /// There is no such directory.
    #[error("the directory {path} does not exist (hint: create it, or choose another path)", path = .0.display())]
    NoDirectory(PathBuf),
    /// There is something else in its place.
    #[error("{path} is not a file (hint: give the path of a file, which is created if it does not exist)", path = .0.display())]
    NotAFile(PathBuf),
    /// The agent may not.
    #[error("no permission to read and write {path} (hint: it must belong to the user that the agent runs as)", path = .path.display())]
    Denied {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The disk does not work.
    #[error("cannot use {path}", path = .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

// === impl CacheError ===

impl CacheError {
    /// An error about a file or directory.
    pub(crate) fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied { path, source },
            io::ErrorKind::IsADirectory => Self::NotAFile(path),
            _ => Self::Io { path, source },
        }
    }
}
