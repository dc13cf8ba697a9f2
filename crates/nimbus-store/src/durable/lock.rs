//! Who may use a path, and how much was written there.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    path::Path,
};

use nimbus_core::{Digest, Epoch, LeafHasher};
use nimbus_disk::beside;

use crate::durable::flaw::Flaw;

/// The right to use a path, and all that is beside it with the same beginning.
///
/// The lock that redb has is on a file, which does not exist at first, and is let go between reading and writing. This
/// one is on a file that stays. The system releases it when the process ends, however it ends.
///
/// The file also says which commit was acknowledged last. redb takes a commit whose pages are damaged for one that never
/// ended, and goes back to the one before; this is how it shows. It costs no sync: after the power was gone, it may say
/// less than there is, but never more.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` where there are no locks.
    file: Option<File>,
}

/// How many bytes a note has: epoch, commit, and a checksum of both.
const NOTE: usize = 32;

fn encode_note(epoch: Epoch, commit: u64) -> [u8; NOTE] {
    let mut note = [0; NOTE];
    note[..8].copy_from_slice(&epoch.0.to_be_bytes());
    note[8..16].copy_from_slice(&commit.to_be_bytes());
    let checksum: Digest = {
        let mut hasher = LeafHasher::extra();
        hasher.part(&note[..16]);
        hasher.finish()
    };
    note[16..].copy_from_slice(checksum.as_bytes());
    note
}

// === impl Lock ===

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// If another process has it, or the directory cannot be written.
    pub(crate) fn take(path: &Path) -> Result<Self, Flaw> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(beside(path, ".lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(Flaw::Busy),
            // Some network file systems have no locks, and redb goes on without them, too.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(Self { file: None }),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Notes that a commit is on disk.
    pub(crate) fn note(&self, epoch: Epoch, commit: u64) {
        let Some(mut file) = self.file.as_ref() else { return };
        // If it cannot be noted, damage that looks like a crash is not told from one.
        let _ = file.rewind().and_then(|()| file.write_all(&encode_note(epoch, commit)));
    }

    /// The last commit of that history that was noted, if any was.
    pub(crate) fn noted(&self, epoch: Epoch) -> Option<u64> {
        let (mut file, mut note) = (self.file.as_ref()?, [0; NOTE]);
        file.rewind().and_then(|()| file.read_exact(&mut note)).ok()?;
        let commit = u64::from_be_bytes(note[8..16].try_into().expect("eight bytes"));
        (note == encode_note(epoch, commit)).then_some(commit)
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
