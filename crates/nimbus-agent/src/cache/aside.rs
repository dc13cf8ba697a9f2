//! Files that cannot be used are kept for somebody to look at.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use nimbus_disk::beside;

/// Enough to see whether the same happens again and again; each may be as large as the memory.
const KEPT: usize = 3;

/// A file that could not be used, and was moved out of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aside {
    /// Where it is now.
    pub(crate) path: PathBuf,
    /// What is wrong with it.
    pub(crate) reason: String,
}

// === impl Aside ===

impl Aside {
    /// Moves a file out of the way. Of those moved before, only the last ones are kept.
    pub(crate) fn set(path: &Path, reason: String) -> io::Result<Self> {
        let earlier = Self::earlier(path)?;
        let number = earlier.last().map_or(1, |last| last + 1);
        let to = beside(path, &format!(".bad-{number}"));
        fs::rename(path, &to)?;
        for number in &earlier[..(earlier.len() + 1).saturating_sub(KEPT)] {
            fs::remove_file(beside(path, &format!(".bad-{number}")))?;
        }
        Ok(Self { path: to, reason })
    }

    /// The numbers of the files that were moved before, in order.
    fn earlier(path: &Path) -> io::Result<Vec<u64>> {
        let prefix = beside(path, ".bad-");
        let directory = prefix.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let prefix = prefix.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut numbers = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }
}
