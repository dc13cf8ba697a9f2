//! The file, through redb.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
    time::SystemTime,
};

use nimbus_core::{AgentId, Digest, ObjectKey};
use nimbus_disk::{Disk, beside};
use redb::{Builder, Database, ReadTransaction, ReadableDatabase, TableDefinition, TableError, backends::FileBackend};

use crate::cache::{
    boot::BootId,
    flaw::Flaw,
    ledger::Ledger,
    pending::Batch,
    record::{Header, encode_key, encode_row},
};

/// The rows: one for every object of which anything is remembered.
pub(crate) const OBJECTS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("objects");

/// One record, under [`HEADER_KEY`].
const HEADER: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("header");

const HEADER_KEY: &str = "header";

/// Agents run on small machines, and everything is read only once.
const CACHE: usize = 1 << 20;

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct Store {
    database: Database,
}

/// What goes into the header besides what is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) boot: Option<&'a BootId>,
    pub(crate) now: SystemTime,
}

/// The settings of redb that all uses share.
pub(crate) fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

/// Reads the header, which must be of this agent.
pub(crate) fn read_header(transaction: &ReadTransaction, agent: &AgentId) -> Result<Header, Flaw> {
    let table = match transaction.open_table(HEADER) {
        Ok(table) => table,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(error) => return Err(Flaw::Content(format!("another program's file: {error}"))),
    };
    match table.get(HEADER_KEY)? {
        Some(bytes) => Header::from_bytes(bytes.value(), agent),
        None => Err(Flaw::Content("there is no header".into())),
    }
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

// === impl Store ===

impl Store {
    /// Opens the file, and says what the last change in it is.
    pub(crate) fn open(path: &Path, disk: &impl Disk, agent: &AgentId) -> Result<(Self, u64), Flaw> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let database = builder().create_with_backend(disk.backend(FileBackend::new(file)?))?;
        let header = read_header(&database.begin_read()?, agent)?;
        Ok((Self { database }, header.sequence))
    }

    /// Makes the file anew, with all that there is. It takes the place of the one before when it is complete.
    pub(crate) fn create(
        path: &Path,
        disk: &impl Disk,
        everything: &Batch,
        stamp: Stamp<'_>,
    ) -> Result<(Self, Ledger), Flaw> {
        let beside = beside(path, ".new");
        let create = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            // Specs may hold secrets.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = FileBackend::new(options.open(&beside)?)?;
            let mut store = Self { database: builder().create_with_backend(disk.backend(file))? };
            let mut ledger = Ledger::default();
            store.write(everything, stamp, &mut ledger)?;
            fs::rename(&beside, path)?;
            sync_directory_of(path)?;
            Ok((store, ledger))
        };
        create().inspect_err(|_| {
            // It is in the way of nothing but other files; the next attempt begins it again.
            let _ = fs::remove_file(&beside);
        })
    }

    /// Writes changes, all or none, and enters them in the ledger if they are known to be on disk.
    pub(crate) fn write(&mut self, batch: &Batch, stamp: Stamp<'_>, ledger: &mut Ledger) -> Result<(), Flaw> {
        // The ledger must stay as it is if this fails, and copying it would cost more than most changes.
        let mut undo: Vec<(ObjectKey, Option<Digest>)> = Vec::with_capacity(batch.objects.len());
        let result = self.commit(batch, stamp, ledger, &mut undo);
        if result.is_err() {
            undo.into_iter().rev().for_each(|(key, before)| {
                ledger.set(key, before);
            });
        }
        result
    }

    fn commit(
        &mut self,
        batch: &Batch,
        stamp: Stamp<'_>,
        ledger: &mut Ledger,
        undo: &mut Vec<(ObjectKey, Option<Digest>)>,
    ) -> Result<(), Flaw> {
        // Durable when it returns: redb's default, which nothing here lowers.
        let transaction = self.database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            for (key, versions) in &batch.objects {
                let checksum = if versions.is_empty() {
                    objects.remove(&*encode_key(key))?;
                    None
                } else {
                    let (row, checksum) = encode_row(key, versions);
                    objects.insert(&*encode_key(key), &*row)?;
                    Some(checksum)
                };
                undo.push((key.clone(), ledger.set(key.clone(), checksum)));
            }
            let header = Header::new(stamp.agent, batch.sequence, batch.position, ledger).saved(stamp.now, stamp.boot);
            transaction.open_table(HEADER)?.insert(HEADER_KEY, &*header.to_bytes())?;
        }
        transaction.commit()?;
        Ok(())
    }
}
