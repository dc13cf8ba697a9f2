//! The file, through redb.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use nimbus_disk::{Disk, beside};
use redb::{Builder, Database, ReadableDatabase, StorageBackend, WriteTransaction, backends::FileBackend};

use crate::{
    durable::{
        flaw::Flaw,
        ledger::{Ledger, Total},
        meta::Meta,
        row::{encode_key, encode_kind, encode_object, encode_slot, encode_tombstone},
        table::{META, META_KEY, Table, claimed, seal},
    },
    state::State,
    unsaved::Changes,
};

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct StoreFile {
    database: Database,
    ledger: Ledger,
    /// The number of the last commit.
    commit: u64,
}

/// One table in a transaction.
struct Rows<'t> {
    table: Table,
    rows: redb::Table<'t, &'static [u8], &'static [u8]>,
    total: &'t mut Total,
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
    pub(crate) fn create(disk: &impl Disk, path: &Path, state: &State) -> Result<Self, Flaw> {
        let beside = beside(path, ".new");
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            // Specs may hold secrets.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let backend = disk.backend(FileBackend::new(options.open(&beside)?)?);
            let mut file = Self { database: open_database(backend)?, ledger: Ledger::default(), commit: 0 };
            file.write(state, &Changes::default())?;
            fs::rename(&beside, path)?;
            sync_directory_of(path)?;
            Ok(file)
        };
        Flaw::catch(create).inspect_err(|_| {
            // It is in the way of nothing but other files; the next attempt begins it again.
            let _ = fs::remove_file(&beside);
        })
    }

    /// Opens a file that was read before, and must still be the same.
    pub(crate) fn open(disk: &impl Disk, path: &Path, read: &Meta, ledger: Ledger) -> Result<Self, Flaw> {
        Flaw::catch(|| {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let database = open_database(disk.backend(FileBackend::new(file)?))?;
            let table = database.begin_read()?.open_table(META)?;
            let same = table.get(META_KEY)?.is_some_and(|row| row.value() == read.to_row());
            // Somebody who does not heed the lock.
            if same { Ok(Self { database, ledger, commit: read.commit }) } else { Err(Flaw::Busy) }
        })
    }

    /// Writes what has changed, all or nothing. When it returns, it is on disk.
    ///
    /// After an error nobody knows, so that nothing more may be written.
    pub(crate) fn write(&mut self, state: &State, changes: &Changes) -> Result<(), Flaw> {
        // Durable when it returns: redb's default, which nothing here lowers.
        let transaction = self.database.begin_write()?;
        let mut ledger = self.ledger;
        write_objects(&transaction, &mut ledger, state, changes)?;
        write_tombstones(&transaction, &mut ledger, changes)?;
        write_publishers(&transaction, &mut ledger, state, changes)?;
        if !changes.extras.is_empty() {
            let mut rows = Rows::open(&transaction, Table::Extras, &mut ledger)?;
            for name in changes.extras.iter().collect::<BTreeSet<_>>() {
                rows.set(name.as_bytes(), state.extras.get(name).map(|value| &**value))?;
            }
        }
        transaction
            .open_table(META)?
            .insert(META_KEY, &*Meta::new(state, &ledger, self.commit + 1).to_row())?;
        transaction.commit()?;
        (self.ledger, self.commit) = (ledger, self.commit + 1);
        Ok(())
    }

    /// The number of the last commit.
    pub(crate) fn commit(&self) -> u64 {
        self.commit
    }
}

fn write_objects(
    transaction: &WriteTransaction,
    ledger: &mut Ledger,
    state: &State,
    changes: &Changes,
) -> Result<(), Flaw> {
    if changes.objects.is_empty() {
        return Ok(());
    }
    let mut rows = Rows::open(transaction, Table::Objects, ledger)?;
    // Each name once, in the order of rows.
    for key in changes.objects.iter().collect::<BTreeSet<_>>() {
        let entry = state.kinds.get(key.kind()).and_then(|kind| kind.all.entry(key));
        rows.set(&encode_key(key), entry.map(encode_object).as_deref())?;
    }
    Ok(())
}

fn write_tombstones(transaction: &WriteTransaction, ledger: &mut Ledger, changes: &Changes) -> Result<(), Flaw> {
    if changes.buried.is_empty() && changes.forgotten.is_empty() {
        return Ok(());
    }
    let forgotten: BTreeSet<_> = changes.forgotten.iter().collect();
    let mut rows = Rows::open(transaction, Table::Tombstones, ledger)?;
    for (slot, graves) in changes.buried.iter().filter(|(slot, _)| !forgotten.contains(slot)) {
        rows.set(&encode_slot(*slot), encode_tombstone(graves).as_deref())?;
    }
    for slot in forgotten {
        rows.set(&encode_slot(*slot), None)?;
    }
    Ok(())
}

fn write_publishers(
    transaction: &WriteTransaction,
    ledger: &mut Ledger,
    state: &State,
    changes: &Changes,
) -> Result<(), Flaw> {
    if !changes.kinds.is_empty() {
        let mut rows = Rows::open(transaction, Table::Kinds, ledger)?;
        for kind in changes.kinds.iter().collect::<BTreeSet<_>>() {
            let publishers = state.kinds.get(kind).map(|kind| encode_kind(&kind.publishers));
            rows.set(kind.as_str().as_bytes(), publishers.as_deref())?;
        }
    }
    if !changes.fences.is_empty() {
        let mut rows = Rows::open(transaction, Table::Fences, ledger)?;
        for (publisher, fence) in &changes.fences {
            rows.set(publisher.as_str().as_bytes(), Some(&fence.to_be_bytes()))?;
        }
    }
    if !changes.synced.is_empty() {
        let mut rows = Rows::open(transaction, Table::Synced, ledger)?;
        for publisher in &changes.synced {
            rows.set(publisher.as_str().as_bytes(), Some(&[]))?;
        }
    }
    Ok(())
}

// === impl Rows ===

impl<'t> Rows<'t> {
    fn open(transaction: &'t WriteTransaction, table: Table, ledger: &'t mut Ledger) -> Result<Self, Flaw> {
        Ok(Self { table, rows: transaction.open_table(table.definition())?, total: ledger.total_mut(table) })
    }

    /// Writes a row in place of what was there, or drops it.
    fn set(&mut self, key: &[u8], body: Option<&[u8]>) -> Result<(), Flaw> {
        let old = match body {
            None => self.rows.remove(key)?,
            Some(body) => {
                let (row, checksum) = seal(self.table.name(), key, body);
                self.total.add(checksum);
                self.rows.insert(key, &*row)?
            }
        };
        if let Some(old) = old {
            self.total.remove(claimed(old.value()));
        }
        Ok(())
    }
}
