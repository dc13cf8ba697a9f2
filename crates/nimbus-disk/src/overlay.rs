//! A file that can be written without being changed.

use std::{
    collections::BTreeMap,
    io, iter,
    ops::{Bound, Range},
};

use parking_lot::Mutex;
use redb::{BackendError, StorageBackend};

/// The size of redb's pages: what it writes are whole ones.
const BLOCK: usize = 4096;

/// A file as it was found, and in RAM what was written since. Locks are those of the file.
#[derive(Debug)]
pub struct Overlay<F> {
    file: F,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// The length that it seems to have.
    len: u64,
    /// How much of the file still shows.
    shown: u64,
    /// By number.
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

fn past_the_end() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short")
}

/// The blocks that a range of bytes is in: of each the number, the offset in it, and the part of the range.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let block = BLOCK as u64;
    let mut done = 0;
    iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % block) as usize;
        let part = done..len.min(done + BLOCK - start);
        done = part.end;
        (!part.is_empty()).then_some((at / block, start, part))
    })
}

// === impl Overlay ===

impl<F: StorageBackend> Overlay<F> {
    /// Shows a file, and keeps what is written.
    ///
    /// # Errors
    /// If the length of the file cannot be told.
    pub fn new(file: F) -> io::Result<Self> {
        let len = file.len()?;
        Ok(Self { file, written: Mutex::new(Written { len, shown: len, blocks: BTreeMap::new() }) })
    }
}

impl<F: StorageBackend> StorageBackend for Overlay<F> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock();
        written.check(offset, out.len())?;
        for (number, start, part) in pieces(offset, out.len()) {
            let out = &mut out[part];
            match written.blocks.get(&number) {
                Some(block) => out.copy_from_slice(&block[start..start + out.len()]),
                None => written.read_through(&self.file, number * BLOCK as u64 + start as u64, out)?,
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written.lock();
        written.len = len;
        written.shown = written.shown.min(len);
        let edge = len / BLOCK as u64;
        written.blocks.retain(|number, _| *number <= edge);
        if let Some(block) = written.blocks.get_mut(&edge) {
            block[(len % BLOCK as u64) as usize..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock();
        written.check(offset, data.len())?;
        for (number, start, part) in pieces(offset, data.len()) {
            if !written.blocks.contains_key(&number) {
                let mut block = Box::new([0; BLOCK]);
                written.read_through(&self.file, number * BLOCK as u64, &mut block[..])?;
                written.blocks.insert(number, block);
            }
            let block = written.blocks.get_mut(&number).expect("it was put there if it was not");
            block[start..start + part.len()].copy_from_slice(&data[part]);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

// === impl Written ===

impl Written {
    fn check(&self, offset: u64, len: usize) -> io::Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(past_the_end()),
        }
    }

    /// Reads what the file has; what it has not, or what no longer shows, is zero.
    fn read_through(&self, file: &impl StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let shown = self.shown.saturating_sub(offset).min(out.len() as u64) as usize;
        let (from_file, rest) = out.split_at_mut(shown);
        rest.fill(0);
        if from_file.is_empty() { Ok(()) } else { file.read(offset, from_file) }
    }
}
