//! Gets to the disk what is not there yet.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use nimbus_core::AgentId;
use nimbus_disk::Disk;
use tracing::warn;

use crate::cache::{
    boot::BootId,
    flaw::Flaw,
    ledger::Ledger,
    lock::Lock,
    pending::Batch,
    shared::Shared,
    store::{Stamp, Store},
};

/// Gets to the disk what is not there yet. It blocks.
#[derive(Debug)]
pub(crate) struct Writer<D> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) path: PathBuf,
    pub(crate) agent: AgentId,
    pub(crate) disk: D,
    pub(crate) boot: Option<BootId>,
    pub(crate) wall: fn() -> SystemTime,
    /// What is on disk, but for what the shared state says is not.
    pub(crate) ledger: Ledger,
    /// The last change that is known to be on disk, and the last one that may be.
    pub(crate) seen: [u64; 2],
    /// Whether the file is of no use.
    pub(crate) renew: bool,
    /// `None` before the first attempt and after one that failed: redb refuses to go on after an error, and so does
    /// fsync.
    pub(crate) store: Option<Store>,
    /// Released after the store, so that who gets it finds the file closed.
    pub(crate) _lock: Lock,
}

// === impl Writer ===

impl<D: Disk> Writer<D> {
    /// Writes all that is saved. After an error some of it may be on disk, but never a part of a delta.
    pub(crate) fn attempt(&mut self) -> Result<(), Flaw> {
        let result = Flaw::catch(|| self.write_changes());
        match result {
            // The disk may work the next time, with the same file.
            Ok(()) | Err(Flaw::Io(_) | Flaw::Busy) => result,
            Err(flaw) => {
                warn!(path = %self.path.display(), error = %flaw, "the memory on disk is damaged, writing it anew");
                self.renew = true;
                Flaw::catch(|| self.write_changes())
            }
        }
    }

    fn write_changes(&mut self) -> Result<(), Flaw> {
        // Not put back after an error.
        let mut store = match self.store.take() {
            Some(store) => store,
            None => self.open()?,
        };
        if let Some(batch) = self.shared.changes() {
            self.seen[1] = batch.sequence;
            let stamp = Stamp { agent: &self.agent, boot: self.boot.as_ref(), now: (self.wall)() };
            store.write(&batch, stamp, &mut self.ledger)?;
            self.written(&batch);
        }
        self.store = Some(store);
        Ok(())
    }

    /// Opens the file, or makes it anew if that cannot be done.
    fn open(&mut self) -> Result<Store, Flaw> {
        if !self.renew {
            match Store::open(&self.path, &self.disk, &self.agent) {
                Ok((store, sequence)) if self.seen.contains(&sequence) => {
                    self.seen = [sequence; 2];
                    return Ok(store);
                }
                Ok((_, sequence)) => return Err(Flaw::Content(format!("it was changed by others: {sequence}"))),
                Err(Flaw::Busy) => return Err(Flaw::Busy),
                // A file that cannot be read can still be replaced. If the disk is full, that fails, too.
                Err(_) => {}
            }
        }
        let everything = self.shared.everything();
        self.seen[1] = everything.sequence;
        let stamp = Stamp { agent: &self.agent, boot: self.boot.as_ref(), now: (self.wall)() };
        let (store, ledger) = Store::create(&self.path, &self.disk, &everything, stamp)?;
        (self.ledger, self.renew) = (ledger, false);
        self.written(&everything);
        Ok(store)
    }

    fn written(&mut self, batch: &Batch) {
        self.seen = [batch.sequence; 2];
        self.shared.written(batch.sequence);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
