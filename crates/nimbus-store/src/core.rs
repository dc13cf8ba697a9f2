//! What readers, writers and the committer of a collection share.

use std::sync::Arc;

use crate::{
    durable::Lost,
    interest::Interest,
    queue::{Batch, Queue, Wake},
    state::State,
    sync::{ArcSwap, Condvar, Mutex, MutexGuard},
    ticket::Ticket,
    txn::Refused,
    writer::Writer,
};

/// What readers, writers and the committer of a collection share.
pub(crate) struct Core {
    /// What readers see: without a disk, what was written last; with one, what is durable.
    visible: ArcSwap<State>,
    writer: Mutex<Writer>,
    /// There is something to write, or nothing more will come. Goes with the writer's lock.
    pub(crate) work: Condvar,
    interest: Arc<Interest>,
}

// === impl Core ===

impl Core {
    pub(crate) fn new(state: State, writer: Writer) -> Self {
        Self {
            visible: ArcSwap::from_pointee(state),
            writer: Mutex::new(writer),
            work: Condvar::new(),
            interest: Arc::default(),
        }
    }

    pub(crate) fn interest(&self) -> &Arc<Interest> {
        &self.interest
    }

    /// What readers see.
    pub(crate) fn visible(&self) -> Arc<State> {
        self.visible.load_full()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// The lock of a writer that may write now.
    ///
    /// # Errors
    /// If the disk has failed, or is too far behind.
    pub(crate) fn lock_to_write(&self) -> Result<MutexGuard<'_, Writer>, Refused> {
        let writer = self.lock();
        if let Some(queue) = &writer.queue {
            queue.admit(&writer.limits)?;
        }
        Ok(writer)
    }

    /// What the next write begins with: all that was accepted, also where readers do not see it yet.
    pub(crate) fn tip(&self, writer: &Writer) -> State {
        let unsettled = writer.queue.as_ref().and_then(Queue::tip);
        unsettled.cloned().unwrap_or_else(|| State::clone(&self.visible.load()))
    }

    /// Makes a state visible: now, or when it is durable. Where nothing has changed, that is when all that it was judged
    /// by is.
    pub(crate) fn settle<T>(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        state: State,
        wake: Wake,
        value: T,
    ) -> Ticket<T> {
        let wake = if self.completes_new_kind(&writer, &state) { Wake::All } else { wake };
        let Some(queue) = &mut writer.queue else {
            self.publish(&writer, state);
            drop(writer);
            self.wake(wake);
            return Ticket::ready(value);
        };
        if queue.changes.is_empty() {
            return queue.join(value);
        }
        let ticket = queue.gather(state, wake, value);
        let waiting = queue.is_waiting();
        drop(writer);
        if waiting {
            self.work.notify_one();
        }
        ticket
    }

    /// Shows readers a state. The caller holds the lock, so that nobody else publishes meanwhile.
    pub(crate) fn publish(&self, _: &Writer, mut state: State) {
        state.version = self.visible.load().version + 1;
        self.visible.store(Arc::new(state));
    }

    /// Shows readers what has become durable, then tells those who wait.
    pub(crate) fn finish(&self, mut writer: MutexGuard<'_, Writer>) {
        let Some(batch) = writer.queue.as_mut().and_then(Queue::finish) else { return };
        let Batch { state, wake, settled, .. } = batch;
        self.publish(&writer, state);
        drop(writer);
        self.wake(wake);
        settled.resolve(Ok(()));
    }

    /// Gives up all that is not durable: readers go on with what they see, writers are refused.
    pub(crate) fn fail(&self, mut writer: MutexGuard<'_, Writer>, lost: &Lost) {
        let given_up = writer.queue.as_mut().map(|queue| queue.fail(lost)).unwrap_or_default();
        drop(writer);
        for batch in given_up {
            batch.settled.resolve(Err(lost.clone()));
        }
    }

    /// Whether with that state, which follows the newest one, somebody may have everything whom none of it is for.
    fn completes_new_kind(&self, writer: &Writer, state: &State) -> bool {
        match writer.queue.as_ref().and_then(Queue::tip) {
            Some(tip) => state.completes_new_kind(tip),
            None => state.completes_new_kind(&self.visible.load()),
        }
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::All => self.interest.wake_all(),
            Wake::Readers(touched) if touched.is_empty() => {}
            Wake::Readers(mut touched) => {
                touched.sort_unstable();
                touched.dedup();
                self.interest.wake(touched);
            }
        }
    }
}
