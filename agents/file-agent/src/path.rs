//! Where a file is, below the root.

use std::{fmt, sync::Arc};

use nimbus_agent::Failure;
use serde::{Deserialize, Serialize};

use crate::refusal;

/// Where a file is, below the root: names joined by `/`, none of which means anything else than itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct FilePath(Arc<str>);

/// File systems allow 255 bytes, of which the staged file needs some.
const MAX_NAME: usize = 240;

/// The system allows 4096 bytes, of which the root needs some.
const MAX_PATH: usize = 2048;

/// What the name of a staged file ends in. It begins with a dot, so that `include *.conf` and its like pass over it.
const STAGED: &str = ".nimbus-new";

// === impl FilePath ===

impl FilePath {
    /// Checks and takes a path.
    pub(crate) fn new(text: &str) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(80).collect();
            Err(refusal::invalid(format!("path {shown:?}: {why}")))
        };
        if text.is_empty() {
            return refuse("expected a path relative to the root of the agent");
        }
        if text.starts_with('/') {
            return refuse("it is absolute (hint: paths are relative to the root of the agent)");
        }
        if text.contains('\0') {
            return refuse("it has a NUL in it");
        }
        if text.len() > MAX_PATH || text.split('/').any(|name| name.len() > MAX_NAME) {
            return refuse("it is too long: 240 bytes for each name, 2048 in all");
        }
        if text.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return refuse("it has a part that is empty, `.` or `..`");
        }
        if text.split('/').any(|name| name.starts_with('.') && name.ends_with(STAGED)) {
            return refuse("names of this form are kept for files that are being written");
        }
        Ok(Self(text.into()))
    }

    /// The last part.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The name under which the next version is written, in the same directory.
    pub(crate) fn staged_name(&self) -> String {
        format!(".{}{STAGED}", self.name())
    }

    /// The same as a path.
    pub(crate) fn staged(&self) -> String {
        let directory = self.0.rsplit_once('/').map(|(directory, _)| format!("{directory}/"));
        format!("{}{}", directory.unwrap_or_default(), self.staged_name())
    }

    /// The directories that lead to it, as paths, the outermost first.
    pub(crate) fn directories(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.match_indices('/').map(|(end, _)| &self.0[..end])
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for FilePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).map_err(|failure| failure.to_string())
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests;
