//! A new version of a file, complete before anybody sees it.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{
        AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, fstat, fsync, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};

use crate::{path::FilePath, stamp::Stamp};

/// A new version of a file, complete before anybody sees it: it lies in the directory of the file under a name of its
/// own, and goes away with this value unless it was put in place.
#[derive(Debug)]
pub(crate) struct Staged {
    directory: OwnedFd,
    file: File,
    name: String,
    target: String,
    is_in_place: bool,
}

/// What may be in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replace {
    /// Whatever has the name now is replaced.
    Yes,
    /// Nothing had the name, and if something has it now, it stays.
    No,
}

// === impl Staged ===

impl Staged {
    /// Makes an empty file that only this user can read. What an agent left under that name when it died is removed.
    pub(crate) fn create(directory: OwnedFd, path: &FilePath) -> io::Result<Self> {
        let (name, target) = (path.staged_name(), path.name().to_owned());
        discard(&directory, &name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR)?);
        Ok(Self { directory, file, name, target, is_in_place: false })
    }

    /// Writes what is to be in it, gives it to its owner, and makes it durable.
    pub(crate) fn fill(&mut self, content: &[u8], stamp: &Stamp) -> io::Result<()> {
        self.file.write_all(content)?;
        let now = fstat(&self.file)?;
        // Who may not give files away may still write its own.
        if (now.st_uid, now.st_gid) != (stamp.uid, stamp.gid) {
            let given = fchown(&self.file, Some(Uid::from_raw(stamp.uid)), Some(Gid::from_raw(stamp.gid)));
            given.map_err(|error| {
                let Stamp { uid, gid, .. } = stamp;
                let hint = "(hint: only root may give files to others)";
                io::Error::new(io::Error::from(error).kind(), format!("giving it to {uid}:{gid}: {error} {hint}"))
            })?;
        }
        fchmod(&self.file, Mode::from_raw_mode(stamp.mode))?;
        self.file.sync_all()
    }

    /// Whether it is still the file that was written. A command that validates has the path, and may do anything.
    pub(crate) fn is_still(&self, stamp: &Stamp) -> io::Result<bool> {
        let (ours, named) = (fstat(&self.file)?, statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)?);
        Ok((ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino) && Stamp::read(&self.file)? == *stamp)
    }

    /// Puts it in place, at one moment for all who look. Durable when this returns.
    pub(crate) fn switch(mut self, replace: Replace) -> io::Result<()> {
        let Self { directory, name, target, .. } = &self;
        match replace {
            Replace::Yes => renameat(directory, name, directory, target)?,
            Replace::No => match renameat_with(directory, name, directory, target, RenameFlags::NOREPLACE) {
                // Some network file systems do not know it. A link does not replace anything either.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    rustix::fs::linkat(directory, name, directory, target, AtFlags::empty())?;
                    discard(directory, name)?;
                }
                renamed => renamed?,
            },
        }
        self.is_in_place = true;
        Ok(fsync(&self.directory)?)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_in_place
            && let Err(error) = discard(&self.directory, &self.name)
        {
            tracing::warn!(name = %self.name, %error, "cannot remove a staged file");
        }
    }
}

/// Removes a name from a directory, whatever it stands for; links are not followed. Nothing there is success.
pub(crate) fn discard(directory: &OwnedFd, name: &str) -> io::Result<()> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
