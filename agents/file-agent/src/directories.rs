//! The directories that this agent has made, and takes away again when they are empty.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use nimbus_agent::Failure;
use parking_lot::Mutex;
use rustix::{
    fs::{AtFlags, Mode, fchmod, fsync, mkdirat, unlinkat},
    io::Errno,
};

use crate::{
    durable,
    path::FilePath,
    refusal,
    root::{Root, last},
};

/// The directories that this agent has made, and takes away again when they are empty.
///
/// They belong to the agent rather than to an object: the last file in one may be another than the first.
#[derive(Debug)]
pub(crate) struct Directories {
    /// Where the list is kept.
    state: PathBuf,
    /// Held while something is put into a directory and while empty ones are removed, so that neither pulls the
    /// ground from under the other.
    made: Mutex<BTreeSet<String>>,
}

/// The list, in the state of the agent.
const LIST: &str = "directories.json";

/// What directories are made with, whatever the umask says.
const MODE: Mode = Mode::from_raw_mode(0o755);

// === impl Directories ===

impl Directories {
    /// Reads the list.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let made = match fs::read(state.join(LIST)) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { state: state.to_owned(), made: Mutex::new(made) })
    }

    /// Opens the directory of a file, makes it if need be, and puts something into it before anybody can remove it.
    pub(crate) fn put_into<T>(
        &self,
        root: &Root,
        path: &FilePath,
        put: impl FnOnce(OwnedFd) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut made = self.made.lock();
        let mut current = root.open().map_err(|error| refusal::failed("open the root", error))?;
        for directory in path.directories() {
            current = match root.enter(&current, last(directory), directory)? {
                Some(next) => next,
                None => {
                    self.intend(&mut made, directory, path)?;
                    make(root, &current, directory)?
                }
            };
        }
        put(current)
    }

    /// Removes the directories of a file that is gone, if they are empty and were made here.
    pub(crate) fn leave(&self, root: &Root, path: &FilePath) -> Result<(), Failure> {
        let mut made = self.made.lock();
        let mut remaining = made.clone();
        for directory in path.directories().collect::<Vec<_>>().into_iter().rev() {
            if !made.contains(directory) {
                break;
            }
            // A directory has a parent like a file has; its path was checked when it was made.
            let Some(parent) = root.parent(&FilePath::new(directory)?)? else {
                remaining.remove(directory);
                continue;
            };
            match unlinkat(&parent, last(directory), AtFlags::REMOVEDIR) {
                Ok(()) => fsync(&parent).map_err(|error| refusal::failed(format!("remove {directory}"), error))?,
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => break,
                Err(error) => return Err(refusal::failed(format!("remove {directory}"), error)),
            }
            remaining.remove(directory);
        }
        if remaining != *made {
            self.save(&remaining)?;
            *made = remaining;
        }
        Ok(())
    }

    /// Remembers the missing directories before they are made: after a crash, an empty one too many is removed later.
    fn intend(&self, made: &mut BTreeSet<String>, first: &str, path: &FilePath) -> Result<(), Failure> {
        let missing = path.directories().filter(|directory| directory.len() >= first.len());
        let mut all = made.clone();
        all.extend(missing.map(str::to_owned));
        if all != *made {
            self.save(&all)?;
            *made = all;
        }
        Ok(())
    }

    fn save(&self, made: &BTreeSet<String>) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(made).expect("a set of texts is JSON");
        durable::replace(&self.state, LIST, &text)
            .map_err(|error| refusal::failed("write the list of directories", error))
    }
}

/// Makes one directory, or takes the one that somebody made at the same moment.
fn make(root: &Root, parent: &OwnedFd, directory: &str) -> Result<OwnedFd, Failure> {
    let failed = |error| refusal::failed(format!("make the directory {directory}"), error);
    let is_new = match mkdirat(parent, last(directory), MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(failed(error)),
    };
    let made = root.enter(parent, last(directory), directory)?.ok_or_else(|| failed(Errno::NOENT))?;
    if is_new {
        fchmod(&made, MODE).map_err(failed)?;
        fsync(parent).map_err(failed)?;
    }
    Ok(made)
}
