//! Files that belong to another one.

use std::path::{Path, PathBuf};

/// The path beside `path` with `suffix` after its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
