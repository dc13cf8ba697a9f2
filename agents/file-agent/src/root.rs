//! The directory that this agent keeps files in, and the way to a file in it.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use nimbus_agent::Failure;
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat},
    io::Errno,
};

use crate::{path::FilePath, refusal, stamp::Stamp};

/// The directory that this agent keeps files in.
///
/// Every way into it is gone name by name, each opened relative to the directory before it and never through a symbolic
/// link: what `openat2` calls `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`, without needing that call. Links that stay
/// inside are refused too, because through them one file would have two names and two owners. Whoever moves directories
/// about meanwhile cannot lead the agent outside.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    /// The agent's own state. If the root is so wide that it lies inside, no object reaches it.
    state: Identity,
}

/// What is at the end of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Missing,
    File(Stamp),
    Link,
    /// Something that is never replaced, in words.
    Other(&'static str),
}

/// Tells a directory from all others.
type Identity = (u64, u64);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

// === impl Root ===

impl Root {
    /// Takes a directory that exists; `state` is where the agent keeps its own files.
    pub(crate) fn new(path: &Path, state: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let state =
            identity(&openat(CWD, state, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)?;
        let root = Self { path, state };
        root.open()?;
        Ok(root)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it. It is looked up each time: the operator may have put another directory in its place.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        Ok(openat(CWD, &self.path, DIRECTORY, Mode::empty())?)
    }

    /// One step on the way: the directory `name` in `parent`, or none if it does not exist. `path` is for the error.
    pub(crate) fn enter(&self, parent: &OwnedFd, name: &str, path: &str) -> Result<Option<OwnedFd>, Failure> {
        let failed = |error: io::Error| refusal::failed(format!("open {path}"), error);
        let directory = match openat(parent, name, DIRECTORY, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let is_link = kind(parent, name).is_ok_and(|kind| kind == Some(FileType::Symlink));
                let what = if is_link { "a symbolic link" } else { "no directory" };
                return Err(refusal::unsafe_path(path, what));
            }
            Err(error) => return Err(failed(error.into())),
        };
        if identity(&directory).map_err(failed)? == self.state {
            return Err(refusal::unsafe_path(path, "where the agent keeps its own state"));
        }
        Ok(Some(directory))
    }

    /// The directory that a file is in, or none if it does not exist.
    pub(crate) fn parent(&self, path: &FilePath) -> Result<Option<OwnedFd>, Failure> {
        let mut current = self.open().map_err(|error| refusal::failed("open the root", error))?;
        for directory in path.directories() {
            let Some(next) = self.enter(&current, last(directory), directory)? else { return Ok(None) };
            current = next;
        }
        Ok(Some(current))
    }

    /// What is at the end of a path.
    pub(crate) fn look(&self, path: &FilePath) -> Result<Found, Failure> {
        match self.parent(path)? {
            Some(parent) => {
                look_in(&parent, path.name()).map_err(|error| refusal::failed(format!("read {path}"), error))
            }
            None => Ok(Found::Missing),
        }
    }
}

/// What `name` in `parent` is.
fn look_in(parent: &OwnedFd, name: &str) -> io::Result<Found> {
    // Opening a device or a pipe may do something, so only what seems to be a file is opened.
    match kind(parent, name)? {
        None => return Ok(Found::Missing),
        Some(FileType::RegularFile) => {}
        Some(FileType::Symlink) => return Ok(Found::Link),
        Some(other) => return Ok(Found::Other(describe(other))),
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(parent, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(Found::Missing),
        Err(Errno::LOOP) => return Ok(Found::Link),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(Found::File(Stamp::read(&file)?)),
        other => Ok(Found::Other(describe(other))),
    }
}

/// What kind of thing `name` in `parent` is; none if there is none.
fn kind(parent: &OwnedFd, name: &str) -> io::Result<Option<FileType>> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn describe(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "no file",
    }
}

fn identity(directory: &OwnedFd) -> io::Result<Identity> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The last part of a path.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
