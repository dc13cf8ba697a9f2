//! What a file is like.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
};

use rustix::{fs, process};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What a file is like: enough to tell whether anybody has changed it, and nothing of what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    /// Empty if the file is too large to be one of ours.
    pub(crate) sha256: String,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Objects have at most a megabyte. A file beyond this has been replaced by somebody, and is not worth reading.
const MAX_READ: u64 = 16 << 20;

/// The permission bits, setuid and its like included.
const MODE: u32 = 0o7777;

// === impl Stamp ===

impl Stamp {
    /// Of a file that is to be written.
    pub(crate) fn new(content: &[u8], mode: u32, uid: Option<u32>, gid: Option<u32>) -> Self {
        Self {
            sha256: hex(&Sha256::digest(content)),
            size: content.len() as u64,
            mode,
            uid: uid.unwrap_or_else(|| process::geteuid().as_raw()),
            gid: gid.unwrap_or_else(|| process::getegid().as_raw()),
        }
    }

    /// Of an open file, from its beginning.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let stat = fs::fstat(file)?;
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let sha256 = if size > MAX_READ { String::new() } else { hash(file)? };
        Ok(Self { sha256, size, mode: stat.st_mode & MODE, uid: stat.st_uid, gid: stat.st_gid })
    }

    /// How `found` differs from this, for people.
    pub(crate) fn difference(&self, found: &Self) -> Option<String> {
        let mut found_words = Vec::new();
        if (&self.sha256, self.size) != (&found.sha256, found.size) {
            found_words.push("other content".to_owned());
        }
        if self.mode != found.mode {
            found_words.push(format!("mode {:04o} instead of {:04o}", found.mode, self.mode));
        }
        if (self.uid, self.gid) != (found.uid, found.gid) {
            found_words.push(format!("owner {}:{} instead of {}:{}", found.uid, found.gid, self.uid, self.gid));
        }
        (!found_words.is_empty()).then(|| found_words.join(", "))
    }
}

/// Never more than the limit, also if the file grows meanwhile.
fn hash(mut file: &File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    file.rewind()?;
    let mut rest = file.take(MAX_READ);
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
