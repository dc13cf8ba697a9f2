//! A disk that fails on demand.

use std::{
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};

use redb::{BackendError, StorageBackend, backends::FileBackend};

use nimbus_disk::Disk;

/// A disk that fails on demand. All of its files fail together.
#[derive(Debug, Clone, Default)]
pub(super) struct FaultyDisk(Arc<Faults>);

#[derive(Debug, Default)]
struct Faults {
    /// What the system says instead of writing; 0 if it writes.
    errno: AtomicU64,
    /// Whether redb panics instead of writing.
    panics: AtomicBool,
    /// Counts what was written.
    writes: AtomicU64,
    /// How many more writes succeed.
    left: AtomicU64,
    limited: AtomicBool,
}

#[derive(Debug)]
pub(super) struct FaultyFile {
    file: FileBackend,
    faults: Arc<Faults>,
}

// === impl FaultyDisk ===

impl FaultyDisk {
    /// As `ENOSPC`.
    pub(super) const FULL: u64 = 28;
    /// As `EIO`.
    pub(super) const BROKEN: u64 = 5;

    /// From now on every write fails with this error.
    pub(super) fn fail(&self, errno: u64) {
        self.0.errno.store(errno, SeqCst);
    }

    /// From now on every write succeeds.
    pub(super) fn heal(&self) {
        self.0.errno.store(0, SeqCst);
        self.0.panics.store(false, SeqCst);
        self.0.limited.store(false, SeqCst);
    }

    /// From now on every write panics.
    pub(super) fn panic(&self) {
        self.0.panics.store(true, SeqCst);
    }

    /// Only so many writes, syncs and changes of length succeed, and then none.
    pub(super) fn limit(&self, writes: u64) {
        self.0.left.store(writes, SeqCst);
        self.0.limited.store(true, SeqCst);
    }

    /// How many writes, syncs and changes of length there were.
    pub(super) fn writes(&self) -> u64 {
        self.0.writes.load(SeqCst)
    }
}

impl Disk for FaultyDisk {
    type Backend = FaultyFile;

    fn backend(&self, file: FileBackend) -> FaultyFile {
        FaultyFile { file, faults: self.0.clone() }
    }
}

// === impl Faults ===

impl Faults {
    fn check(&self) -> io::Result<()> {
        assert!(!self.panics.load(SeqCst), "as redb does where it trusts the file");
        let errno = self.errno.load(SeqCst);
        if errno != 0 {
            return Err(io::Error::from_raw_os_error(errno as i32));
        }
        let is_over = |left: u64| left.checked_sub(1);
        if self.limited.load(SeqCst) && self.left.try_update(SeqCst, SeqCst, is_over).is_err() {
            return Err(io::Error::from_raw_os_error(FaultyDisk::FULL as i32));
        }
        self.writes.fetch_add(1, SeqCst);
        Ok(())
    }
}

// === impl FaultyFile ===

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        // What the page cache has is enough for tests.
        self.faults.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.faults.check()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}
