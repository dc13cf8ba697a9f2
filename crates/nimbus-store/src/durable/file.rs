//! The file, through redb, and the log in front of it.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use nimbus_disk::{Disk, beside};
use redb::{Builder, Database, ReadableDatabase, StorageBackend, backends::FileBackend};

use crate::{
    durable::{
        changed::changed_rows,
        edit::{Edit, edit},
        flaw::Flaw,
        ledger::Ledger,
        load::Loaded,
        log::{self, Group, Log},
        meta::{FORMAT, Meta},
        table::{META, META_KEY},
    },
    state::State,
    unsaved::Changes,
};

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct StoreFile {
    database: Database,
    ledger: Ledger,
    /// The number of the last commit, be it in the file or in the log.
    commit: u64,
    log: Log,
    /// What is in the log, and not in the file yet.
    logged: Changes,
}

/// What is written goes through it, and everything is read only once: inner pages and what changes often must fit.
const CACHE: usize = 64 << 20;

/// The settings of redb that all uses share.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

/// Opens a database in a file, or in what stands for one.
pub(crate) fn open_database(backend: impl StorageBackend) -> Result<Database, Flaw> {
    Ok(builder().create_with_backend(backend)?)
}

/// Makes the names in a directory outlive the power.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(directory)?.sync_all() {
        // Some file systems cannot, or need not.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

// === impl StoreFile ===

impl StoreFile {
    /// Makes a file for a collection that is empty. It has its name when it is complete.
    pub(crate) fn create(disk: &impl Disk, path: &Path, state: &State, log_bytes: usize) -> Result<Self, Flaw> {
        let beside = beside(path, ".new");
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            // Specs may hold secrets.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let database = open_database(disk.backend(FileBackend::new(options.open(&beside)?)?))?;
            let commit = 1;
            let (ledger, _) =
                edit(&database, Ledger::default(), |_| Ok(()), |ledger| Meta::new(state, ledger, commit))?;
            log::set_aside(path)?;
            fs::rename(&beside, path)?;
            let log = Log::open(disk, path, log_bytes)?;
            sync_directory_of(path)?;
            Ok(Self { database, ledger, commit, log, logged: Changes::default() })
        };
        Flaw::catch(create).inspect_err(|_| {
            // It is in the way of nothing but other files; the next attempt begins it again.
            let _ = fs::remove_file(&beside);
        })
    }

    /// Opens a file that was read before, and must still be the same. It takes over what is in the log.
    pub(crate) fn open(disk: &impl Disk, path: &Path, loaded: &Loaded, log_bytes: usize) -> Result<Self, Flaw> {
        Flaw::catch(|| {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let database = open_database(disk.backend(FileBackend::new(file)?))?;
            let table = database.begin_read()?.open_table(META)?;
            if table.get(META_KEY)?.is_none_or(|row| row.value() != loaded.found.to_row()) {
                // Somebody who does not heed the lock.
                return Err(Flaw::Busy);
            }
            drop(table);
            // Versions that know of no log must not take the file for all that there is.
            let (ledger, meta) = if loaded.logged.groups.is_empty() && loaded.found.format == FORMAT {
                (loaded.ledger, loaded.meta.clone())
            } else {
                loaded.redo(&database)?
            };
            let log = Log::open(disk, path, log_bytes)?;
            sync_directory_of(path)?;
            Ok(Self { database, ledger, commit: meta.commit, log, logged: Changes::default() })
        })
    }

    /// Writes what has changed, all or nothing. When it returns, it is on disk: in the log, or, where that has no room
    /// for it, in the file, with all that was in the log.
    ///
    /// After an error nobody knows, so that nothing more may be written.
    pub(crate) fn write(&mut self, state: &State, changes: &Changes) -> Result<(), Flaw> {
        self.commit += 1;
        if self.log.has_room(changes.bytes) {
            let group = prost::Message::encode_to_vec(&Group::new(state, changes)?);
            if self.log.has_room(group.len()) {
                self.log.append(state.epoch, self.commit, &group)?;
                self.logged.append(changes);
                return Ok(());
            }
        }
        self.logged.append(changes);
        self.save(state)
    }

    /// Leaves all that was written in the file, and nothing in the log.
    pub(crate) fn close(&mut self, state: &State) -> Result<(), Flaw> {
        if !self.logged.is_empty() {
            self.save(state)?;
        }
        self.log.clear()
    }

    /// Writes what is in the log to the file.
    fn save(&mut self, state: &State) -> Result<(), Flaw> {
        let (logged, commit) = (&self.logged, self.commit);
        let rows = |edit: &mut Edit<'_>| changed_rows(state, logged, |table, key, body| edit.set(table, key, body));
        let meta = |ledger: &Ledger| Meta::new(state, ledger, commit);
        (self.ledger, _) = edit(&self.database, self.ledger, rows, meta)?;
        self.logged = Changes::default();
        self.log.restart();
        Ok(())
    }

    /// The number of the last commit.
    pub(crate) fn commit(&self) -> u64 {
        self.commit
    }
}
