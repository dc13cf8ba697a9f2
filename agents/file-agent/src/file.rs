//! The kind that this agent serves.

use std::fmt;

#[allow(missing_docs, unreachable_pub, reason = "generated; the proto file is the documentation")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/nimbus.file.v1.rs"));
}

pub(crate) use generated::{File, file::Content};

/// Without what is in the file: it may be a secret, and debug output ends up in logs.
impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path)
            .field("content", &self.content)
            .field("mode", &self.mode)
            .field("owner", &self.owner)
            .field("group", &self.group)
            .field("validate", &self.validate)
            .field("reload", &self.reload)
            .field("adopt", &self.adopt)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_bytes().len())
    }
}

// === impl Content ===

impl Content {
    /// What is in the file.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Data(data) => data,
        }
    }
}
