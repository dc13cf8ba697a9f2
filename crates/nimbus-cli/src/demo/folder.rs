//! Where the demo keeps its files, for as long as it runs.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// A folder that is removed with this value, unless it is to be kept.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    keep: bool,
}

// === impl Folder ===

impl Folder {
    /// Makes a new folder among the temporary files.
    pub(crate) fn make(keep: bool) -> Result<Self, String> {
        let path = env::temp_dir().join(format!("nimbus-demo-{:08x}", rand::random::<u32>()));
        fs::create_dir(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Self { path, keep })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it stays.
    pub(crate) fn is_kept(&self) -> bool {
        self.keep
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::error!(%error, path = %self.path.display(), "cannot remove what the demo has written");
        }
    }
}
