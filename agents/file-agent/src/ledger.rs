//! Which files belong to which objects, on disk.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File},
    io, mem,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use nimbus_agent::{Failure, ObjectKey, Spec as _};
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::OwnedMutexGuard;

use crate::{durable, file, path::FilePath, record::Record, refusal};

/// Which files belong to which objects, on disk: one small file for each object, replaced as a whole.
#[derive(Debug)]
pub(crate) struct Ledger {
    directory: PathBuf,
    table: Mutex<Table>,
    /// Held for as long as the ledger is open; the system lets go of it when the process ends, however it does.
    lock: File,
}

/// The record of one object, for one call at a time. A call that was given up keeps its turn until what it began on
/// another thread has ended.
#[derive(Debug)]
pub(crate) struct Turn {
    ledger: Arc<Ledger>,
    key: ObjectKey,
    record: OwnedMutexGuard<Record>,
}

#[derive(Debug, Default)]
struct Table {
    records: HashMap<ObjectKey, Arc<tokio::sync::Mutex<Record>>>,
    paths: HashMap<FilePath, ObjectKey>,
}

/// A record with the object that it is of.
#[derive(Serialize, Deserialize)]
struct Page {
    namespace: String,
    name: String,
    #[serde(flatten)]
    record: Record,
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error("{} is in use (hint: is another agent running with the same --state?)", .0.display())]
    Busy(PathBuf),
    #[error("{} is not a record of this agent (hint: without it, its file has no owner): {reason}", .path.display())]
    Page { path: PathBuf, reason: String },
    #[error("cannot use {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

// === impl Ledger ===

impl Ledger {
    /// Opens the ledger in `state`, which is made if it does not exist.
    pub(crate) fn open(state: &Path) -> Result<Arc<Self>, LedgerError> {
        let directory = state.join("files");
        let failed = |source| LedgerError::Io { path: state.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        let lock = File::create(state.join("lock")).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| LedgerError::Busy(state.to_owned()))?;

        let mut table = Table::default();
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.to_string_lossy().ends_with(durable::UNFINISHED) {
                fs::remove_file(&path).map_err(failed)?;
                continue;
            }
            let text = fs::read(&path).map_err(failed)?;
            let refuse = |reason| LedgerError::Page { path: path.clone(), reason };
            let page: Page = serde_json::from_slice(&text).map_err(|error| refuse(error.to_string()))?;
            let key = ObjectKey::new(file::File::kind(), &page.namespace, &page.name);
            let key = key.map_err(|error| refuse(error.to_string()))?;
            table.paths.extend(page.record.files.keys().map(|path| (path.clone(), key.clone())));
            table.records.insert(key, Arc::new(tokio::sync::Mutex::new(page.record)));
        }
        Ok(Arc::new(Self { directory, table: Mutex::new(table), lock }))
    }

    /// Waits for the record of an object, which is empty if there is none.
    pub(crate) async fn turn(self: &Arc<Self>, key: &ObjectKey) -> Turn {
        let record = self.table.lock().records.entry(key.clone()).or_default().clone();
        Turn { ledger: Arc::clone(self), key: key.clone(), record: record.lock_owned().await }
    }
}

impl Drop for Ledger {
    /// Closing the file is not enough: a process that is being started at this moment has it too, until it is.
    fn drop(&mut self) {
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

// === impl Turn ===

impl Turn {
    /// The object.
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// What is known of it.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Makes sure that no other object has the path.
    pub(crate) fn check(&self, path: &FilePath) -> Result<(), Failure> {
        match self.ledger.table.lock().paths.get(path) {
            Some(owner) if *owner != self.key => Err(refusal::conflict(path, owner)),
            _ => Ok(()),
        }
    }

    /// Replaces the record, on disk and then here. If a path in it belongs to another object, nothing changes.
    pub(crate) fn write(&mut self, record: Record) -> Result<(), Failure> {
        if *self.record == record {
            return Ok(());
        }
        self.claim(&record)?;
        let saved = self.save(&record).map_err(|error| refusal::failed("write the ledger", error));
        let other = if saved.is_ok() { mem::replace(&mut *self.record, record) } else { record };
        self.let_go(&other);
        saved
    }

    /// Reserves all paths of a record, or none.
    fn claim(&self, record: &Record) -> Result<(), Failure> {
        let mut table = self.ledger.table.lock();
        for path in record.files.keys() {
            match table.paths.get(path) {
                Some(owner) if *owner != self.key => return Err(refusal::conflict(path, owner)),
                _ => {}
            }
        }
        table.paths.extend(record.files.keys().map(|path| (path.clone(), self.key.clone())));
        Ok(())
    }

    /// Gives back the paths of a record that is no longer, or never was, the one of this object.
    fn let_go(&self, other: &Record) {
        let mut table = self.ledger.table.lock();
        for path in other.files.keys().filter(|path| !self.record.files.contains_key(*path)) {
            table.paths.remove(path);
        }
    }

    fn save(&self, record: &Record) -> io::Result<()> {
        let (namespace, name) = (self.key.namespace().to_owned(), self.key.name().to_owned());
        let file_name = page_name(&self.key);
        if record.is_empty() {
            return durable::remove(&self.ledger.directory, &file_name);
        }
        let page = Page { namespace, name, record: record.clone() };
        durable::replace(&self.ledger.directory, &file_name, &serde_json::to_vec_pretty(&page)?)
    }
}

impl Drop for Turn {
    /// Forgets an empty record, unless somebody waits for it.
    fn drop(&mut self) {
        let mut table = self.ledger.table.lock();
        // One is the table's, one is ours; others can only come from the table, which is locked.
        let is_last = Arc::strong_count(OwnedMutexGuard::mutex(&self.record)) == 2;
        if is_last && self.record.is_empty() {
            table.records.remove(&self.key);
        }
    }
}

/// Names of objects may be longer than names of files.
fn page_name(key: &ObjectKey) -> String {
    let hash = Sha256::digest(key.to_string());
    let short: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{short}.json")
}
