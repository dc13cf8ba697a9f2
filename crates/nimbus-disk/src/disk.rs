//! How redb gets at a file.

use redb::{StorageBackend, backends::FileBackend};

/// How redb gets at a file. Tests put a disk that fails in place of the real one.
pub trait Disk: Send + 'static {
    /// What redb reads and writes.
    type Backend: StorageBackend;

    /// Puts itself between redb and a file.
    fn backend(&self, file: FileBackend) -> Self::Backend;
}

/// The disk as it is.
#[derive(Debug, Clone, Copy)]
pub struct RealDisk;

// === impl RealDisk ===

impl Disk for RealDisk {
    type Backend = FileBackend;

    fn backend(&self, file: FileBackend) -> FileBackend {
        file
    }
}
