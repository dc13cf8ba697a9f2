//! What has been accepted and is not settled yet: at most one group that is being written, and one that gathers.

use std::{mem, sync::Arc};

use crate::{
    durable::Lost,
    limits::Limits,
    state::State,
    ticket::{Settled, Ticket},
    txn::Refused,
    unsaved::Changes,
    writer::Touched,
};

/// What has been accepted and is not settled yet. Whatever comes while a group is being written gathers for the next
/// one, so that a slow disk makes groups larger, and one write alone waits for nobody.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// What of the gathering group is not on disk.
    pub(crate) changes: Changes,
    gathering: Option<Batch>,
    writing: Option<Batch>,
    failed: Option<Arc<Lost>>,
    /// Nobody writes any more: the committer ends when it has written the rest.
    pub(crate) closed: bool,
}

/// Writes that become durable and visible together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The collection after them.
    pub(crate) state: State,
    pub(crate) wake: Wake,
    pub(crate) settled: Arc<Settled>,
    tickets: usize,
    bytes: usize,
}

/// Who wants to know of a new state.
#[derive(Debug)]
pub(crate) enum Wake {
    All,
    Readers(Vec<Touched>),
}

// === impl Queue ===

impl Queue {
    /// The newest state that was accepted, unless all are settled.
    pub(crate) fn tip(&self) -> Option<&State> {
        self.gathering.as_ref().or(self.writing.as_ref()).map(|batch| &batch.state)
    }

    /// The states that are not visible yet, with whom they wake, oldest first.
    pub(crate) fn batches(&mut self) -> impl Iterator<Item = &mut Batch> {
        self.writing.iter_mut().chain(&mut self.gathering)
    }

    /// Lets a writer pass, unless the disk has failed or is too far behind.
    pub(crate) fn admit(&self, limits: &Limits) -> Result<(), Refused> {
        if let Some(lost) = &self.failed {
            return Err(Refused::Lost(Lost::clone(lost)));
        }
        let (unsettled, bytes) = self.unsettled();
        if unsettled >= limits.unsettled {
            return Err(Refused::Full { limit: "unsettled", max: limits.unsettled });
        }
        if bytes >= limits.unsettled_bytes {
            return Err(Refused::Full { limit: "unsettled_bytes", max: limits.unsettled_bytes });
        }
        Ok(())
    }

    /// How many writes wait for the disk, and their bytes.
    pub(crate) fn unsettled(&self) -> (usize, usize) {
        let batches = || self.gathering.iter().chain(&self.writing);
        let bytes = batches().map(|batch| batch.bytes).sum::<usize>() + self.changes.bytes;
        (batches().map(|batch| batch.tickets).sum(), bytes)
    }

    /// Adds a write, whose changes are here already.
    pub(crate) fn gather<T>(&mut self, state: State, wake: Wake, value: T) -> Ticket<T> {
        if let Some(lost) = &self.failed {
            return Ticket::lost(value, Lost::clone(lost));
        }
        let batch = match &mut self.gathering {
            Some(batch) => {
                batch.state = state;
                batch.wake.add(wake);
                batch
            }
            None => {
                let settled = Arc::default();
                self.gathering.insert(Batch { state, wake, settled, tickets: 0, bytes: 0 })
            }
        };
        batch.ticket(value)
    }

    /// A ticket for a write that changes nothing: it is settled with what came before it.
    pub(crate) fn join<T>(&mut self, value: T) -> Ticket<T> {
        match self.gathering.as_mut().or(self.writing.as_mut()) {
            Some(batch) => batch.ticket(value),
            None => Ticket::ready(value),
        }
    }

    /// Whether somebody must tell the committer of what has gathered; if it is busy, it will look by itself.
    pub(crate) fn is_waiting(&self) -> bool {
        self.writing.is_none()
    }

    /// Begins to write all that has gathered, which is so many writes.
    pub(crate) fn begin(&mut self) -> Option<(State, Changes, usize)> {
        let mut batch = self.gathering.take()?;
        let changes = mem::take(&mut self.changes);
        batch.bytes = changes.bytes;
        let (state, writes) = (batch.state.clone(), batch.tickets);
        self.writing = Some(batch);
        Some((state, changes, writes))
    }

    /// Ends what was begun.
    pub(crate) fn finish(&mut self) -> Option<Batch> {
        self.writing.take()
    }

    /// Gives up all that is not settled, and whatever may come.
    pub(crate) fn fail(&mut self, lost: &Lost) -> Vec<Batch> {
        self.failed = Some(Arc::new(lost.clone()));
        self.changes = Changes::default();
        self.writing.take().into_iter().chain(self.gathering.take()).collect()
    }

    /// Why nothing is accepted.
    pub(crate) fn failure(&self) -> Option<&Arc<Lost>> {
        self.failed.as_ref()
    }
}

// === impl Batch ===

impl Batch {
    fn ticket<T>(&mut self, value: T) -> Ticket<T> {
        self.tickets += 1;
        Ticket::pending(value, self.settled.clone())
    }
}

// === impl Wake ===

impl Wake {
    pub(crate) const NOBODY: Self = Self::Readers(Vec::new());

    fn add(&mut self, other: Self) {
        match (self, other) {
            (Self::All, _) => {}
            (Self::Readers(readers), Self::Readers(more)) => readers.extend(more),
            (this, Self::All) => *this = Self::All,
        }
    }

    /// Wakes the readers of more lanes.
    pub(crate) fn add_readers(&mut self, readers: Vec<Touched>) {
        self.add(Self::Readers(readers));
    }
}
