//! Who may use a path.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
};

use nimbus_disk::beside;

use crate::cache::error::CacheError;

/// The right to use a path, and all that is beside it with the same beginning.
///
/// The lock that redb has is on a file, which is replaced when it is made anew, and does not exist at first. This one is
/// on a file that stays. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` where there are no locks.
    file: Option<File>,
}

// === impl Lock ===

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// If another process has it, or the directory cannot be written.
    pub(crate) fn take(path: &Path) -> Result<Self, CacheError> {
        let place = beside(path, ".lock");
        let file = match OpenOptions::new().write(true).create(true).truncate(false).open(&place) {
            Ok(file) => file,
            // What is already there can still be read, under redb's lock.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(Self { file: None }),
            Err(error) => return Err(CacheError::new(&place, error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Self { file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(CacheError::Busy(path.to_owned())),
            // Some network file systems have no locks, and redb goes on without them, too.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(Self { file: None }),
            Err(TryLockError::Error(error)) => Err(CacheError::new(&place, error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough while a process that somebody is just starting has a copy of all open files.
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}
