//! Why a file cannot be opened, and why writes are lost.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::durable::flaw::Flaw;

/// Why a durable collection cannot be opened. Whatever it is, the file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is damaged. Nothing of it is used.
    #[error(
        "{} is damaged: {what} (hint: restore a backup, or move it aside and start with an empty one, which publishers \
         fill again)", path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Which part of it, and what is wrong there.
        what: String,
    },
    /// The file was written by a newer version.
    #[error(
        "{} has format {found}, this version reads up to {supported} (hint: was this program downgraded?)", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// Another process, or another collection of this one, has the file open.
    #[error("{} is in use (hint: is another bus running on it?)", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// What is there was never a collection.
    #[error("{} is not a collection: {what} (hint: is the path right?)", path.display())]
    NotACollection {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}{}", path.display(), hint(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The disk failed. What was not acknowledged before may be there after a restart, or not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} could not be written, so that nothing is accepted until a restart: {what} (hint: is the disk full, or failing?)",
    path.display()
)]
pub struct Lost {
    path: Arc<Path>,
    what: Arc<str>,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (hint: does the directory exist?)",
        io::ErrorKind::PermissionDenied => " (hint: may this user write there?)",
        io::ErrorKind::StorageFull => " (hint: the disk is full)",
        _ => "",
    }
}

// === impl OpenError ===

impl OpenError {
    pub(crate) fn new(path: &Path, flaw: Flaw) -> Self {
        let path = path.to_owned();
        match flaw {
            Flaw::Busy => Self::Locked { path },
            Flaw::Newer { found, supported } => Self::Newer { path, found, supported },
            Flaw::Foreign(what) => Self::NotACollection { path, what },
            Flaw::Io(source) => Self::Io { path, source },
            flaw @ (Flaw::Redb(_) | Flaw::Panic(_) | Flaw::Content(_)) => {
                Self::Corrupt { path, what: flaw.to_string() }
            }
        }
    }
}

// === impl Lost ===

impl Lost {
    pub(crate) fn new(path: &Path, flaw: &Flaw) -> Self {
        Self { path: path.into(), what: flaw.to_string().into() }
    }

    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn for_test(path: &Path, what: &str) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    /// The file that could not be written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What went wrong.
    pub fn what(&self) -> &str {
        &self.what
    }
}
