//! The collection: one writer, many readers that never block it.

mod leasing;

use std::{fmt, ops::Bound, path::Path, sync::Arc};

use bytes::Bytes;
use nimbus_core::{
    Epoch, Revision,
    planted::{self, Bug},
};
use nimbus_disk::{Disk, RealDisk};

use crate::{
    core::Core,
    cursor::Cursor,
    disk_watch::{DiskWatch, NoDiskWatch},
    durable::{self, Committer, Lost, OpenError},
    feed::Feeds,
    filter::{Fields, NoFields},
    interest::{Interest, Signal},
    limits::Limits,
    plan::Plan,
    queue::Wake,
    scope::Scope,
    state::State,
    sync::MutexGuard,
    ticket::Ticket,
    txn::{Committed, Refused, Txn},
    writer::Writer,
};

/// How a collection is made.
pub struct Config {
    /// Identity of the history that begins here. A durable collection goes on with the one that it has.
    pub epoch: Epoch,
    /// What is accepted.
    pub limits: Limits,
    /// Reads fields of specs, for filters.
    pub fields: Arc<dyn Fields>,
    /// Every kind is complete from the beginning, whether a publisher has synced it or not. For trying things out: after
    /// a restart, readers remove what has not been published again yet.
    pub assume_complete: bool,
    /// Frames are cut at this size. With 256 KiB, a frame is one write to the socket, and many readers share it.
    pub frame_bytes: usize,
    /// Large groups that are being sent may hold on to this much in all; beyond it, readers that have stalled in the
    /// oldest ones begin again.
    pub group_bytes: usize,
    /// What was acknowledged may lie in the log for as long as it has no more bytes than this; then the file takes all of it
    /// at once, and everybody waits for that. A start reads all of the log.
    pub log_bytes: usize,
    /// Watches how the disk does, where there is one.
    pub watch: Arc<dyn DiskWatch>,
    /// Tokens of leases are above this. A history without a memory of those before it gives another number each time, so
    /// that no token of an earlier one is good again.
    pub last_token: u64,
}

/// A versioned collection of objects. Cheap to clone; all clones are the same collection.
///
/// Reads never block and are consistent: a [`State`] is the whole collection at one revision.
///
/// A collection that was opened from a file is durable: a write is acknowledged, and shown to readers, only when it is on
/// disk. Writes that wait for the disk are written together. When the last clone is dropped, the thread that drops it
/// waits until everything is on disk.
#[derive(Clone)]
pub struct Collection(Arc<Inner>);

/// Some twenty thousand writes of usual size. What they change is written in a fraction of a second, and read in another.
const LOG_BYTES: usize = 16 << 20;

struct Inner {
    core: Arc<Core>,
    feeds: Feeds,
    /// Writes to the disk, if there is one.
    committer: Option<Committer>,
}

// === impl Config ===

impl Config {
    /// The defaults, for a history of that identity.
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            limits: Limits::default(),
            fields: Arc::new(NoFields),
            assume_complete: false,
            frame_bytes: 256 << 10,
            group_bytes: 512 << 20,
            log_bytes: LOG_BYTES,
            watch: Arc::new(NoDiskWatch),
            last_token: 0,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("epoch", &self.epoch)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

// === impl Collection ===

impl Collection {
    /// An empty collection, in memory only.
    pub fn new(config: Config) -> Self {
        let epoch = if planted::is(Bug::ReuseEpoch) { Epoch(1) } else { config.epoch };
        let state = State::new(epoch, config.assume_complete);
        let feeds = Feeds::new(config.frame_bytes, config.group_bytes);
        let core = Arc::new(Core::new(state, Writer::new(config.limits, config.fields, config.last_token)));
        Self(Arc::new(Inner { core, feeds, committer: None }))
    }

    /// Opens a durable collection, or makes it if there is no file. It goes on with the epoch, the revision and all else
    /// that was acknowledged; `config.epoch` is for a new one.
    ///
    /// All of the file is read and verified. Reading changes nothing in it.
    ///
    /// # Errors
    /// If the file is damaged, somebody else's, or cannot be used.
    pub fn open(path: &Path, config: Config) -> Result<Self, OpenError> {
        Self::open_on(&RealDisk, path, config)
    }

    /// As [`Collection::open`], on any disk.
    pub(crate) fn open_on(disk: &impl Disk, path: &Path, config: Config) -> Result<Self, OpenError> {
        let feeds = Feeds::new(config.frame_bytes, config.group_bytes);
        let (core, committer) = durable::open(disk, path, config)?;
        Ok(Self(Arc::new(Inner { core, feeds, committer: Some(committer) })))
    }

    /// One whose writes go wherever that committer writes them.
    #[cfg(all(test, feature = "shuttle"))]
    pub(crate) fn from_parts(core: Arc<Core>, committer: Committer) -> Self {
        let Config { frame_bytes, group_bytes, .. } = Config::new(Epoch(0));
        Self(Arc::new(Inner { core, feeds: Feeds::new(frame_bytes, group_bytes), committer: Some(committer) }))
    }

    /// As [`Collection::open`], without a thread of its own: nothing becomes durable, is shown or is acknowledged before
    /// the disk is told to go on. For simulations, which repeat a run only if nobody else decides when that is.
    ///
    /// # Errors
    /// As [`Collection::open`].
    #[cfg(feature = "sim")]
    pub fn open_driven(path: &Path, config: Config) -> Result<(Self, durable::DrivenDisk), OpenError> {
        let feeds = Feeds::new(config.frame_bytes, config.group_bytes);
        let (core, committer, disk) = durable::open_driven(path, config)?;
        Ok((Self(Arc::new(Inner { core, feeds, committer: Some(committer) })), disk))
    }

    /// Whether what is acknowledged outlives the process.
    pub fn is_durable(&self) -> bool {
        self.0.committer.is_some()
    }

    /// Why writes are refused since the disk failed, if it did. Only a restart helps.
    pub fn failure(&self) -> Option<Arc<Lost>> {
        self.0.core.lock().failure().cloned()
    }

    /// The whole collection as it is now.
    pub fn state(&self) -> Arc<State> {
        self.0.core.visible()
    }

    /// Makes all changes of a transaction, at the next revision. If nothing changes, there is no revision either.
    ///
    /// Blocks the thread until they are durable, if the collection is; see [`Collection::submit`].
    ///
    /// # Errors
    /// If any part of it is refused; then nothing has changed.
    pub fn commit(&self, txn: &Txn) -> Result<Committed, Refused> {
        Ok(self.submit(txn)?.wait()?)
    }

    /// Makes all changes of a transaction at a revision that comes from outside, such as that of an upstream bus.
    ///
    /// # Errors
    /// As [`Collection::commit`], and if the revision is not above all before.
    pub fn commit_at(&self, revision: Revision, txn: &Txn) -> Result<Committed, Refused> {
        Ok(self.submit_at(revision, txn)?.wait()?)
    }

    /// Decides about a transaction now; the ticket is settled when its changes are durable and visible.
    ///
    /// Transactions are decided in the order in which they are submitted, each by what those before it have changed,
    /// whether that is visible yet or not.
    ///
    /// # Errors
    /// If any part of it is refused; then nothing changes.
    pub fn submit(&self, txn: &Txn) -> Result<Ticket, Refused> {
        self.write(txn, None)
    }

    /// As [`Collection::submit`], at a revision that comes from outside.
    ///
    /// # Errors
    /// As [`Collection::submit`], and if the revision is not above all before.
    pub fn submit_at(&self, revision: Revision, txn: &Txn) -> Result<Ticket, Refused> {
        self.write(txn, Some(revision))
    }

    /// Says what a transaction would do.
    ///
    /// # Errors
    /// If it would be refused.
    pub fn plan(&self, txn: &Txn) -> Result<Committed, Refused> {
        let writer = self.0.core.lock_to_write()?;
        writer.check_fences(&txn.publisher, txn.fence, &txn.leases)?;
        let state = self.0.core.tip(&writer);
        let plan = Plan::new(&writer.limits, &state, txn, state.head.next())?;
        let revision = if plan.changes.is_empty() { state.head } else { state.head.next() };
        Ok(Committed { revision, outcomes: plan.outcomes })
    }

    /// Forgets the ends of objects up to `revision`; who is behind it must resync. Blocks until that is durable.
    pub fn trim(&self, revision: Revision) {
        // A disk that failed has told so already, and forgets nothing.
        let _ = self.submit_trim(revision).wait();
    }

    /// As [`Collection::trim`], without blocking.
    pub fn submit_trim(&self, revision: Revision) -> Ticket<()> {
        let mut writer = self.0.core.lock();
        if let Some(lost) = writer.failure() {
            return Ticket::lost((), Lost::clone(lost));
        }
        let mut state = self.0.core.tip(&writer);
        writer.trim(&mut state, revision);
        self.0.core.settle(writer, state, Wake::NOBODY, ())
    }

    /// Keeps a small fact beside the objects, under a name; `None` drops it. Readers of objects do not see it.
    ///
    /// The limit on what is unsettled does not hold for these: they are few, and whoever keeps one waits for it.
    pub fn set_extra(&self, name: &str, value: Option<Bytes>) -> Ticket<()> {
        self.set_extras(self.0.core.lock(), [(name.to_owned(), value)])
    }

    /// The same for several, by whoever has the lock already.
    fn set_extras(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        extras: impl IntoIterator<Item = (String, Option<Bytes>)>,
    ) -> Ticket<()> {
        if let Some(lost) = writer.failure() {
            return Ticket::lost((), Lost::clone(lost));
        }
        let mut state = self.0.core.tip(&writer);
        for (name, value) in extras {
            let name: Arc<str> = name.into();
            if state.extras.get(&name) != value.as_ref()
                && let Some(queue) = &mut writer.queue
            {
                queue.changes.bytes += value.as_ref().map_or(0, Bytes::len);
                queue.changes.extras.push(name.clone());
            }
            match value {
                Some(value) => state.extras.insert(name, value),
                None => state.extras.remove(&name),
            };
        }
        self.0.core.settle(writer, state, Wake::NOBODY, ())
    }

    /// The facts whose names begin with `prefix`, in the order of their names.
    pub fn extras(&self, prefix: &str) -> Vec<(String, Bytes)> {
        let state = self.state();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = state.extras.range::<_, str>(from).take_while(|(name, _)| name.starts_with(prefix));
        found.map(|(name, value)| (name.to_string(), value.clone())).collect()
    }

    /// A reader of that scope, which raises the signal when there is something new for it.
    pub fn cursor(&self, scope: Scope, signal: Signal) -> Cursor {
        Cursor::new(self.clone(), scope, signal)
    }

    /// Wakes every reader.
    pub fn wake_all(&self) {
        self.0.core.interest().wake_all();
    }

    pub(crate) fn core(&self) -> &Core {
        &self.0.core
    }

    pub(crate) fn interest(&self) -> &Arc<Interest> {
        self.0.core.interest()
    }

    pub(crate) fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }

    fn write(&self, txn: &Txn, at: Option<Revision>) -> Result<Ticket, Refused> {
        let writer = self.0.core.lock_to_write()?;
        self.write_locked(writer, txn, at, |_, _| ())
    }

    /// Makes the changes of a transaction, and lets `note` take note of what came of it before anybody else writes.
    pub(crate) fn write_locked(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        txn: &Txn,
        at: Option<Revision>,
        note: impl FnOnce(&mut Writer, &Committed),
    ) -> Result<Ticket, Refused> {
        writer.check_fences(&txn.publisher, txn.fence, &txn.leases)?;
        let mut state = self.0.core.tip(&writer);
        let revision = at.unwrap_or_else(|| state.head.next());
        if revision <= state.head || revision == Revision(u64::MAX) {
            return Err(Refused::NotAhead { given: revision, head: state.head });
        }
        let mut plan = Plan::new(&writer.limits, &state, txn, revision)?;
        writer.raise_fence(&txn.publisher, txn.fence);
        writer.publishers.name(&txn.publisher, &txn.steps);
        let outcomes = std::mem::take(&mut plan.outcomes);
        if plan.changes.is_empty() {
            let committed = Committed { revision: state.head, outcomes };
            note(&mut writer, &committed);
            if writer.queue.is_none() {
                return Ok(Ticket::ready(committed));
            }
            // The fence may have risen.
            return Ok(self.0.core.settle(writer, state, Wake::NOBODY, committed));
        }
        let committed = Committed { revision, outcomes };
        note(&mut writer, &committed);
        let touched = writer.perform(&mut state, &plan, revision);
        Ok(self.0.core.settle(writer, state, Wake::Readers(touched), committed))
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Collection")
            .field("epoch", &state.epoch)
            .field("head", &state.head)
            .field("durable", &self.is_durable())
            .finish_non_exhaustive()
    }
}
