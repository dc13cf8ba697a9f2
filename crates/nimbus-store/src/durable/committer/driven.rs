//! A disk that writes when it is told to.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    core::Core,
    durable::{error::Lost, file::StoreFile, flaw::Flaw, lock::Lock},
    queue::Queue,
};

/// Makes writes durable when it is told to, in place of the thread that does so otherwise. Dropping it is the loss of
/// power: what is not durable is gone.
pub struct DrivenDisk {
    core: Arc<Core>,
    path: PathBuf,
    file: StoreFile,
    lock: Lock,
}

// === impl DrivenDisk ===

impl DrivenDisk {
    pub(in crate::durable) fn new(path: &Path, core: Arc<Core>, file: StoreFile, lock: Lock) -> Self {
        Self { core, path: path.to_owned(), file, lock }
    }

    /// Makes durable what has gathered; false if nothing has. Nobody is shown or told anything before
    /// [`DrivenDisk::finish`].
    pub fn write(&mut self) -> bool {
        let mut writer = self.core.lock();
        let Some((state, changes)) = writer.queue.as_mut().and_then(Queue::begin) else { return false };
        drop(writer);
        let written = Flaw::catch(|| self.file.write(&state, &changes));
        if let Err(flaw) = written {
            self.core.fail(self.core.lock(), &Lost::new(&self.path, &flaw));
            return false;
        }
        self.lock.note(state.epoch, self.file.commit());
        true
    }

    /// Shows what was written last, and tells those who wait for it.
    pub fn finish(&mut self) {
        self.core.finish(self.core.lock());
    }
}

impl fmt::Debug for DrivenDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrivenDisk").field("path", &self.path).finish_non_exhaustive()
    }
}
