//! The thread that makes writes durable.

#[cfg(feature = "sim")]
mod driven;

use std::{
    fmt, io,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};

#[cfg(feature = "sim")]
pub use self::driven::DrivenDisk;
use crate::{
    core::Core,
    disk_watch::DiskWatch,
    durable::{error::Lost, file::StoreFile, flaw::Flaw, lock::Lock},
};

/// The thread that makes writes durable. When this is dropped, it writes what is left, and ends.
pub(crate) struct Committer {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

/// Writes whatever has gathered, until nothing more will come or the disk fails.
fn run(core: &Core, path: &Path, file: &mut StoreFile, lock: &Lock, watch: &dyn DiskWatch) {
    let mut writer = core.lock();
    loop {
        let Some(queue) = &mut writer.queue else { return };
        let Some((state, changes, writes)) = queue.begin() else {
            if queue.closed {
                drop(writer);
                // All that was acknowledged is on disk already, in the log at least.
                let _ = Flaw::catch(|| file.close(&core.visible()));
                return;
            }
            core.work.wait(&mut writer);
            continue;
        };
        drop(writer);
        watch.begins(writes, changes.bytes);
        let written = Flaw::catch(|| file.write(&state, &changes));
        watch.ends(written.is_ok());
        if written.is_ok() {
            lock.note(state.epoch, file.commit());
        }
        // They may be the last to hold on to what has changed since.
        drop((state, changes));
        writer = core.lock();
        if let Err(flaw) = written {
            return core.fail(writer, &Lost::new(path, &flaw));
        }
        core.finish(writer);
        writer = core.lock();
    }
}

// === impl Committer ===

impl Committer {
    pub(crate) fn start(
        path: &Path,
        core: Arc<Core>,
        mut file: StoreFile,
        lock: Lock,
        watch: Arc<dyn DiskWatch>,
    ) -> io::Result<Self> {
        let (shared, path) = (core.clone(), path.to_owned());
        let work = move || {
            run(&shared, &path, &mut file, &lock, &*watch);
            // redb writes when it closes, and panics if it does not like what it finds. All that was acknowledged is
            // there already.
            let _ = Flaw::catch(|| {
                drop(file);
                Ok(())
            });
            drop(lock);
        };
        let thread = thread::Builder::new().name("nimbus-store".into()).spawn(work)?;
        Ok(Self { core, thread: Some(thread) })
    }
}

#[cfg(feature = "sim")]
impl Committer {
    /// Without a thread: somebody else writes.
    pub(crate) fn driven(core: Arc<Core>) -> Self {
        Self { core, thread: None }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        if let Some(queue) = &mut self.core.lock().queue {
            queue.closed = true;
        }
        self.core.work.notify_one();
        // Whoever is woken by the committer may have held on to the collection for longest: then it ends by itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic has been reported, and there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").finish_non_exhaustive()
    }
}
