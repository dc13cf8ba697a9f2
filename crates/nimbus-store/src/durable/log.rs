//! The log beside the file: groups of writes, each durable with one sync.

mod entry;

use std::{
    fmt,
    fs::{self, OpenOptions},
    io,
    path::Path,
};

use nimbus_core::{Epoch, Revision};
use nimbus_disk::{Disk, beside};
use prost::Message as _;
use redb::{StorageBackend, backends::FileBackend};

pub(crate) use self::entry::{Entry, Group};
use self::entry::{HEADER, next_entry};
use crate::durable::flaw::Flaw;

/// The log beside the file. Groups are appended until there is no more room; then the file takes all of them in one commit,
/// and the log begins again at its start, over what was there.
///
/// **Invariant:** what is read is a run of commits that goes on where the file ends. Commits up to that one are left from
/// before, and are passed over. What is not whole at the end was never acknowledged; if a newer commit comes after it, it
/// was, and the log is refused.
pub(crate) struct Log {
    file: Box<dyn StorageBackend>,
    /// Where the next group goes.
    end: u64,
    /// How long the file is: what lies before this has its blocks already, so that a sync writes data only.
    len: u64,
    max: u64,
}

/// What the log has that the file has not.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    pub(crate) groups: Vec<Group>,
}

/// The log grows by as much at once. Zeros are written ahead, because a file that grows with each group has its length and
/// its blocks written with each, too.
const STEP: u64 = 1 << 20;

/// Where the log of a file is.
pub(crate) fn path_of(path: &Path) -> std::path::PathBuf {
    beside(path, ".log")
}

/// What is in the log of a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path_of(path)) {
        // Whoever wrote the file had none, or nothing in it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        result => result,
    }
}

/// Puts the log of a file that is gone out of the way: it may be all that is left of it.
pub(crate) fn set_aside(path: &Path) -> io::Result<()> {
    match fs::rename(path_of(path), beside(path, ".log.old")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

// === impl Log ===

impl Log {
    /// Opens the log of a file, or makes it. What is in it has been read, and is in the file.
    pub(crate) fn open(disk: &impl Disk, path: &Path, max: usize) -> Result<Self, Flaw> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Specs may hold secrets.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = disk.backend(FileBackend::new(options.open(path_of(path))?)?);
        let len = file.len()?;
        Ok(Self { file: Box::new(file), end: 0, len, max: max as u64 })
    }

    /// Whether a group of so many bytes can be appended.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.end + (bytes + HEADER) as u64 <= self.max
    }

    /// Appends a group. When it returns, it is on disk.
    pub(crate) fn append(&mut self, epoch: Epoch, commit: u64, group: &[u8]) -> Result<(), Flaw> {
        let entry = Entry { epoch, commit, group }.encode();
        let end = self.end + entry.len() as u64;
        if end > self.len {
            let len = end.next_multiple_of(STEP);
            self.file.set_len(len)?;
            self.file.write(self.len, &vec![0; (len - self.len) as usize])?;
            self.len = len;
        }
        self.file.write(self.end, &entry)?;
        self.file.sync_data()?;
        self.end = end;
        Ok(())
    }

    /// Begins again: all that is in it is in the file.
    pub(crate) fn restart(&mut self) {
        self.end = 0;
    }

    /// Leaves nothing behind. All that was in it is in the file.
    pub(crate) fn clear(&mut self) -> Result<(), Flaw> {
        self.restart();
        self.file.set_len(0)?;
        self.len = 0;
        Ok(self.file.sync_data()?)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("end", &self.end).finish_non_exhaustive()
    }
}

// === impl Logged ===

impl Logged {
    /// What comes after `commit`.
    pub(crate) fn from_bytes(bytes: &[u8], epoch: Epoch, commit: u64) -> Result<Self, Flaw> {
        let (mut groups, mut last, mut at) = (Vec::new(), commit, 0);
        while let Some((entry, len)) = Entry::decode(&bytes[at..]) {
            if entry.epoch != epoch {
                break;
            }
            if entry.commit == last + 1 {
                let damaged = |error| Flaw::Content(format!("its log, commit {}: {error}", entry.commit));
                groups.push(Group::decode(entry.group).map_err(damaged)?);
                last = entry.commit;
            } else if entry.commit > last || !groups.is_empty() {
                break;
            }
            at += len;
        }
        match next_entry(&bytes[at..], epoch, last) {
            None => Ok(Self { groups }),
            Some(found) => Err(Flaw::Content(format!(
                "its log is damaged: commit {found} is there, and what lies between it and commit {last} is not"
            ))),
        }
    }

    /// Where the collection is after all of it.
    pub(crate) fn last(&self) -> Option<(Revision, Revision)> {
        self.groups.last().map(|group| (Revision(group.head), Revision(group.horizon)))
    }
}

#[cfg(test)]
mod tests;
