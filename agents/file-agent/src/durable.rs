//! Small files that survive a crash: either the old one or the new one is there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// What the name of a file ends in while it is written.
pub(crate) const UNFINISHED: &str = ".tmp";

/// Replaces the file `name` in `directory`. When this returns, the new content outlives a crash of the machine.
pub(crate) fn replace(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let unfinished = directory.join(format!("{name}{UNFINISHED}"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&unfinished, directory.join(name))?;
    sync(directory)
}

/// Removes the file `name` from `directory`, for good.
pub(crate) fn remove(directory: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(directory.join(name)) {
        Ok(()) => sync(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes what happened to the names in a directory durable.
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
