//! The handle to the agent's memory.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use nimbus_core::{AgentId, Backoff};
use nimbus_disk::{Disk, RealDisk, beside};
use redb::backends::FileBackend;
use tokio::{sync::watch, time::timeout};
use tracing::{Instrument as _, warn};

use crate::cache::{
    aside::Aside,
    boot::BootId,
    error::CacheError,
    flaw::Flaw,
    health::{CacheFailure, Health},
    load::Loaded,
    lock::Lock,
    memory::{Delta, Memory},
    pending::Pending,
    shared::Shared,
    worker::Worker,
    writer::Writer,
};

/// Long enough for a slow disk; a supervisor that waits for the agent to end usually gives it 10 seconds or more.
const CLOSE: Duration = Duration::from_secs(5);

/// A disk is full for minutes or hours, and an attempt may write all that there is.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(250), max: Duration::from_secs(30) };

/// Keeps what an agent must not forget. Cheap to clone; the file is closed after the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    health: Arc<watch::Sender<Health>>,
    /// `None` forgets.
    file: Option<Arc<Handle>>,
}

/// Closes the file when it is dropped.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

/// What a keeper depends on besides its file.
#[derive(Debug)]
pub(crate) struct Settings<D> {
    pub(crate) disk: D,
    pub(crate) backoff: Backoff,
    pub(crate) boot: Option<BootId>,
    pub(crate) wall: fn() -> SystemTime,
    /// Writes on the thread of the runtime, which then waits for the disk.
    pub(crate) inline: bool,
}

// === impl Settings ===

impl Settings<RealDisk> {
    pub(crate) fn real() -> Self {
        #[expect(clippy::disallowed_methods, reason = "it is only shown to people, and nothing depends on it")]
        Self { disk: RealDisk, backoff: BACKOFF, boot: BootId::current(), wall: SystemTime::now, inline: false }
    }
}

// === impl Keeper ===

impl Keeper {
    /// Keeps nothing: everything succeeds at once.
    pub(crate) fn forgetful() -> Self {
        Self { health: Arc::new(watch::Sender::new(Health::Good)), file: None }
    }

    /// Opens the memory of an agent, or begins one.
    ///
    /// A file that is damaged, or not of this agent, is moved aside, and a new one is begun. If the disk is full, the
    /// keeper works and its health is failing. It blocks, for as long as it takes to read the file twice.
    ///
    /// # Errors
    /// If another process has the file, or the agent may not read and write it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub(crate) fn open(
        path: &Path,
        agent: &AgentId,
        inline: bool,
    ) -> Result<(Self, Memory, Option<Aside>), CacheError> {
        Self::open_with(path, agent, Settings { inline, ..Settings::real() })
    }

    pub(crate) fn open_with(
        path: &Path,
        agent: &AgentId,
        settings: Settings<impl Disk>,
    ) -> Result<(Self, Memory, Option<Aside>), CacheError> {
        // A link stays, and what it points at is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        check_place(&path)?;
        let lock = Lock::take(&path)?;
        // Left by a crash.
        let _ = fs::remove_file(beside(&path, ".new"));
        let (loaded, aside) = load(&path, agent)?;
        let Settings { disk, backoff, boot, wall, inline } = settings;

        let memory = loaded.image.to_memory(boot.as_ref(), loaded.when);
        let health = Arc::new(watch::Sender::new(Health::Good));
        let pending = Pending::new(loaded.image, loaded.sequence, boot.clone());
        let shared = Arc::new(Shared::new(pending, health.clone()));
        let writer = Writer {
            shared: shared.clone(),
            path,
            agent: agent.clone(),
            disk,
            boot,
            wall,
            ledger: loaded.ledger,
            seen: [loaded.sequence; 2],
            renew: loaded.renew,
            store: None,
            _lock: lock,
        };
        // It ends when the handle is dropped, and `close` waits for that.
        tokio::spawn(Worker { writer, backoff, shared: shared.clone(), inline }.run().in_current_span());
        Ok((Self { health, file: Some(Arc::new(Handle { shared })) }, memory, aside))
    }

    /// Takes a change, which is written soon. It never waits: while the disk is slow, changes are merged by object.
    pub(crate) fn save(&self, delta: Delta) {
        if let Some(file) = &self.file {
            file.shared.save(delta);
        }
    }

    /// Waits until everything saved before the call is on disk.
    ///
    /// # Errors
    /// At once, if the last attempt to write failed, or when one does.
    ///
    /// # Cancel safety
    /// What was saved is written all the same.
    pub(crate) async fn barrier(&self) -> Result<(), CacheFailure> {
        match &self.file {
            Some(file) => file.shared.barrier().await,
            None => Ok(()),
        }
    }

    /// Whether what is saved gets to the disk.
    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// Writes what is not written and closes the file, also for other handles. It waits for a slow disk, but not
    /// forever.
    pub(crate) async fn close(self) {
        let Some(file) = &self.file else { return };
        file.shared.close();
        if timeout(CLOSE, file.shared.ended()).await.is_err() {
            warn!("the memory on disk could not be closed in time");
        }
    }
}

/// Whether there can be a file here.
fn check_place(path: &Path) -> Result<(), CacheError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(CacheError::NoDirectory(directory.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(CacheError::NoDirectory(directory.to_owned()));
        }
        Err(error) => return Err(CacheError::new(directory, error)),
    }
    // Directories and devices must not be moved aside.
    let is_something_else = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    if is_something_else || path.file_name().is_none() {
        return Err(CacheError::NotAFile(path.to_owned()));
    }
    Ok(())
}

/// Reads the file if there is one, and moves it aside if it cannot be used.
fn load(path: &Path, agent: &AgentId) -> Result<(Loaded, Option<Aside>), CacheError> {
    // A lock on it needs the right to write.
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Loaded::nothing(), None)),
        Err(error) => return Err(CacheError::new(path, error)),
    };
    let size = file.metadata().map_err(|error| CacheError::new(path, error))?.len();
    if size == 0 {
        return Ok((Loaded::nothing(), None));
    }
    let loaded = FileBackend::new(file).map_err(Flaw::from).and_then(|file| Loaded::from_file(file, agent));
    match loaded {
        Ok(loaded) => Ok((loaded, None)),
        Err(Flaw::Busy) => Err(CacheError::Busy(path.to_owned())),
        Err(flaw) => {
            let aside = Aside::set(path, flaw.to_string()).map_err(|error| CacheError::new(path, error))?;
            Ok((Loaded::nothing(), Some(aside)))
        }
    }
}

// === impl Handle ===

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}
