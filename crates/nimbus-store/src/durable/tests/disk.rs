//! A disk that keeps what is synced, and fails or dies when it is told to.

use std::{
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::{Condvar, Mutex};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use redb::{BackendError, StorageBackend, backends::FileBackend};

use nimbus_disk::Disk;

/// A disk that keeps what is synced, and fails or dies when it is told to. All clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    fault: Mutex<Fault>,
    /// Held while syncs must wait.
    stalled: Mutex<bool>,
    moved: Condvar,
    syncs: AtomicU64,
}

#[derive(Debug, Default, Clone)]
enum Fault {
    #[default]
    None,
    /// All changes fail.
    Failing,
    /// After so many changes, the power goes.
    Crash { left: u64, seed: u64 },
    /// It went.
    Dead,
}

/// A file of which only what is synced is on the disk.
#[derive(Debug)]
pub(crate) struct TestFile {
    file: FileBackend,
    disk: Arc<Shared>,
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    bytes: Vec<u8>,
    /// What is not on the disk yet.
    log: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Len(u64),
    Bytes(u64, Vec<u8>),
}

// === impl TestDisk ===

impl TestDisk {
    /// A disk that dies after so many changes. Of what was not synced, some is there, some not, some in part.
    pub(crate) fn dies_after(changes: u64, seed: u64) -> Self {
        let disk = Self::default();
        *disk.0.fault.lock() = Fault::Crash { left: changes, seed };
        disk
    }

    /// From now on, all changes fail.
    pub(crate) fn fail(&self) {
        *self.0.fault.lock() = Fault::Failing;
    }

    /// Syncs wait, or go on.
    pub(crate) fn stall(&self, stalled: bool) {
        *self.0.stalled.lock() = stalled;
        self.0.moved.notify_all();
    }

    /// How often something was made durable.
    pub(crate) fn syncs(&self) -> u64 {
        self.0.syncs.load(Relaxed)
    }
}

impl Disk for TestDisk {
    type Backend = TestFile;

    fn backend(&self, file: FileBackend) -> TestFile {
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read(0, &mut bytes).unwrap();
        TestFile { file, disk: self.0.clone(), cached: Mutex::new(Cached { bytes, log: Vec::new() }) }
    }
}

// === impl TestFile ===

impl TestFile {
    fn check(&self, cached: &mut Cached) -> io::Result<()> {
        let mut fault = self.disk.fault.lock();
        match &mut *fault {
            Fault::None => Ok(()),
            Fault::Failing | Fault::Dead => Err(io::Error::other("the disk is broken")),
            Fault::Crash { left: 0, seed } => {
                self.lose(cached, *seed);
                *fault = Fault::Dead;
                Err(io::Error::other("the power is gone"))
            }
            Fault::Crash { left, .. } => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// Keeps some of what was not synced.
    fn lose(&self, cached: &mut Cached, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed);
        let kept = random.random_range(0..3);
        for change in cached.log.drain(..) {
            match change {
                Change::Len(len) => self.file.set_len(len.max(self.file.len().unwrap())).unwrap(),
                Change::Bytes(offset, mut bytes) => {
                    if kept == 0 || (kept == 1 && random.random_bool(0.5)) {
                        continue;
                    }
                    if random.random_bool(0.3) {
                        bytes.truncate(random.random_range(0..=bytes.len()));
                    }
                    self.file.write(offset, &bytes).unwrap();
                }
            }
        }
    }
}

impl StorageBackend for TestFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.cached.lock().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let cached = self.cached.lock();
        let offset = usize::try_from(offset).unwrap();
        let found = cached.bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut cached = self.cached.lock();
        self.check(&mut cached)?;
        cached.bytes.resize(usize::try_from(len).unwrap(), 0);
        cached.log.push(Change::Len(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut stalled = self.disk.stalled.lock();
        while *stalled {
            self.disk.moved.wait(&mut stalled);
        }
        drop(stalled);
        let mut cached = self.cached.lock();
        self.check(&mut cached)?;
        for change in cached.log.drain(..) {
            match change {
                Change::Len(len) => self.file.set_len(len)?,
                Change::Bytes(offset, bytes) => self.file.write(offset, &bytes)?,
            }
        }
        self.disk.syncs.fetch_add(1, Relaxed);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut cached = self.cached.lock();
        self.check(&mut cached)?;
        let at = usize::try_from(offset).unwrap();
        cached.bytes[at..at + data.len()].copy_from_slice(data);
        cached.log.push(Change::Bytes(offset, data.to_vec()));
        Ok(())
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
