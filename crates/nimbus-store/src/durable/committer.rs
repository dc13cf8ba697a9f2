//! The thread that makes writes durable.

#[cfg(feature = "sim")]
mod driven;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "sim")]
pub use self::driven::DrivenDisk;
use crate::{
    core::Core,
    disk_watch::DiskWatch,
    durable::{error::Lost, file::StoreFile, flaw::Flaw, lock::Lock},
    state::State,
    sync::thread::{self, JoinHandle},
    unsaved::Changes,
};

/// The thread that makes writes durable. When this is dropped, it writes what is left, and ends.
pub(crate) struct Committer {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

/// Where the thread writes.
pub(crate) trait Writing: Send {
    /// Makes a state durable, which so many writes have led to.
    fn write(&mut self, state: State, changes: Changes, writes: usize) -> Result<(), Lost>;

    /// Nothing more will come after that state.
    fn close(&mut self, state: &State);
}

/// A file, and who wants to know how it does.
struct Recording {
    path: PathBuf,
    file: StoreFile,
    lock: Lock,
    watch: Arc<dyn DiskWatch>,
}

/// Writes whatever has gathered, until nothing more will come or the disk fails.
fn run(core: &Core, disk: &mut impl Writing) {
    let mut writer = core.lock();
    loop {
        let Some(queue) = &mut writer.queue else { return };
        let Some((state, changes, writes)) = queue.begin() else {
            if queue.closed {
                drop(writer);
                return disk.close(&core.visible());
            }
            core.work.wait(&mut writer);
            continue;
        };
        drop(writer);
        let written = disk.write(state, changes, writes);
        writer = core.lock();
        if let Err(lost) = written {
            return core.fail(writer, &lost);
        }
        core.finish(writer);
        writer = core.lock();
    }
}

// === impl Recording ===

impl Writing for Recording {
    fn write(&mut self, state: State, changes: Changes, writes: usize) -> Result<(), Lost> {
        self.watch.begins(writes, changes.bytes);
        let written = Flaw::catch(|| self.file.write(&state, &changes));
        self.watch.ends(written.is_ok());
        if written.is_ok() {
            self.lock.note(state.epoch, self.file.commit());
        }
        written.map_err(|flaw| Lost::new(&self.path, &flaw))
    }

    fn close(&mut self, state: &State) {
        // All that was acknowledged is on disk already, in the log at least.
        let _ = Flaw::catch(|| self.file.close(state));
    }
}

// === impl Committer ===

impl Committer {
    pub(crate) fn start(
        path: &Path,
        core: Arc<Core>,
        file: StoreFile,
        lock: Lock,
        watch: Arc<dyn DiskWatch>,
    ) -> io::Result<Self> {
        let mut disk = Recording { path: path.to_owned(), file, lock, watch };
        let shared = core.clone();
        let work = move || {
            run(&shared, &mut disk);
            let Recording { file, lock, .. } = disk;
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

    /// The same with any disk.
    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn writing_to(core: Arc<Core>, mut disk: impl Writing + 'static) -> Self {
        let shared = core.clone();
        let thread = thread::spawn(move || run(&shared, &mut disk));
        Self { core, thread: Some(thread) }
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
