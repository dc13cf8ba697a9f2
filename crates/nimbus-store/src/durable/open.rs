//! Opening a file, or making one.

use std::{fs, io, path::Path, sync::Arc};

#[cfg(feature = "sim")]
use nimbus_disk::RealDisk;
use nimbus_disk::{Disk, beside};
use redb::backends::FileBackend;

#[cfg(feature = "sim")]
use crate::durable::committer::DrivenDisk;
use crate::{
    collection::Config,
    core::Core,
    durable::{committer::Committer, error::OpenError, file::StoreFile, flaw::Flaw, load::Loaded, lock::Lock, log},
    queue::Queue,
    state::State,
    writer::Writer,
};

/// Opens the collection of a file, or makes both, and begins to write what changes.
pub(crate) fn open(disk: &impl Disk, path: &Path, config: Config) -> Result<(Arc<Core>, Committer), OpenError> {
    let watch = config.watch.clone();
    let (core, file, lock) = take(disk, path, config)?;
    let committer = Committer::start(path, core.clone(), file, lock, watch);
    Ok((core, committer.map_err(|error| OpenError::new(path, error.into()))?))
}

/// The same, and whoever asks for it writes what changes.
#[cfg(feature = "sim")]
pub(crate) fn open_driven(path: &Path, config: Config) -> Result<(Arc<Core>, Committer, DrivenDisk), OpenError> {
    let (core, file, lock) = take(&RealDisk, path, config)?;
    let disk = DrivenDisk::new(path, core.clone(), file, lock);
    Ok((core.clone(), Committer::driven(core), disk))
}

fn take(disk: &impl Disk, path: &Path, config: Config) -> Result<(Arc<Core>, StoreFile, Lock), OpenError> {
    let failed = |flaw| OpenError::new(path, flaw);
    if path.is_dir() {
        return Err(failed(Flaw::Foreign("it is a directory".into())));
    }
    let lock = Lock::take(path).map_err(failed)?;
    let Config { epoch, limits, fields, last_token, assume_complete, log_bytes, .. } = config;
    let mut writer = Writer::new(limits, fields, last_token);
    let opened = match fs::OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let state = State::new(epoch, assume_complete);
            // Nobody holds on to what was here before.
            lock.note(state.epoch, 0);
            StoreFile::create(disk, path, &state, log_bytes).map(|file| (file, state))
        }
        Err(error) => Err(error.into()),
        Ok(found) => read(disk, path, found, assume_complete, log_bytes, &mut writer, &lock),
    };
    let (file, mut state) = opened.map_err(failed)?;
    state.durable = true;
    writer.queue = Some(Queue::default());
    Ok((Arc::new(Core::new(state, writer)), file, lock))
}

fn read(
    disk: &impl Disk,
    path: &Path,
    found: fs::File,
    assume_complete: bool,
    log_bytes: usize,
    writer: &mut Writer,
    lock: &Lock,
) -> Result<(StoreFile, State), Flaw> {
    let backend = FileBackend::new(found).map_err(redb::Error::from)?;
    let loaded = Loaded::from_file(backend, &log::read(path)?, assume_complete, writer)?;
    if let Some(noted) = lock.noted(loaded.state.epoch).filter(|noted| *noted > loaded.meta.commit) {
        let (found, lock) = (loaded.meta.commit, beside(path, ".lock"));
        let what = format!(
            "it ends with commit {found}, but commit {noted} was acknowledged: the pages of the last one are damaged, or \
             it is an old copy (if you want to lose what is missing, remove {})",
            lock.display()
        );
        return Err(Flaw::Content(what));
    }
    Ok((StoreFile::open(disk, path, &loaded, log_bytes)?, loaded.state))
}
