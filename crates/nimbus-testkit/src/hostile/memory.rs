//! The memory of a process, as the kernel sees it.

use std::{fs, path::PathBuf};

use anyhow::Context as _;

/// The memory of a process.
pub(crate) struct Memory {
    folder: PathBuf,
}

/// What the kernel calls the memory that a process has, and the most that it had.
const NOW: &str = "VmRSS:";
const MOST: &str = "VmHWM:";

/// Written to `clear_refs`, it makes the most that a process had what it has now.
const FORGET_MOST: &str = "5";

// === impl Memory ===

impl Memory {
    pub(crate) fn of(pid: u32) -> Self {
        Self { folder: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// KiB that it has now; from here on, the most that it has is remembered.
    pub(crate) fn begin(&self) -> anyhow::Result<u64> {
        fs::write(self.folder.join("clear_refs"), FORGET_MOST).context("cannot reset the peak of the bus' memory")?;
        self.now()
    }

    /// KiB that it has.
    pub(crate) fn now(&self) -> anyhow::Result<u64> {
        self.read(NOW)
    }

    /// The most KiB that it had since the beginning.
    pub(crate) fn peak(&self) -> anyhow::Result<u64> {
        self.read(MOST)
    }

    fn read(&self, what: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(self.folder.join("status")).context("the bus has ended")?;
        let line = status.lines().find_map(|line| line.strip_prefix(what)).context("the bus has ended")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}
