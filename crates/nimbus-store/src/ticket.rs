//! Tickets: what a write came to, once it is settled.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use nimbus_core::planted::{self, Bug};

use crate::{
    durable::Lost,
    sync::{Condvar, Mutex},
    txn::Committed,
};

/// What a write came to, once it is settled: durable, and visible to readers.
///
/// It is a future that needs no runtime. What was submitted happens whether anybody waits for it or not. If the disk
/// fails first, nobody can say whether it is there after a restart.
#[must_use = "a write that nobody waits for may be lost without notice"]
pub struct Ticket<T = Committed> {
    value: Option<T>,
    /// `None` if there is nothing to wait for.
    settled: Option<Arc<Settled>>,
    /// Which waker is this one's.
    place: Option<usize>,
}

/// Whether a group of writes is settled, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    settling: Mutex<Settling>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Settling {
    result: Option<Result<(), Lost>>,
    wakers: Vec<Waker>,
}

// === impl Ticket ===

impl<T> Ticket<T> {
    /// What is settled already.
    pub(crate) fn ready(value: T) -> Self {
        Self { value: Some(value), settled: None, place: None }
    }

    /// What is settled together with its group.
    pub(crate) fn pending(value: T, settled: Arc<Settled>) -> Self {
        let settled = (!planted::is(Bug::AckBeforeDurable)).then_some(settled);
        Self { value: Some(value), settled, place: None }
    }

    /// What never will be.
    pub(crate) fn lost(value: T, lost: Lost) -> Self {
        let settled = Settled::default();
        settled.resolve(Err(lost));
        Self::pending(value, Arc::new(settled))
    }

    /// Blocks the thread until it is settled. On an asynchronous worker, await the ticket instead.
    ///
    /// # Errors
    /// If the disk failed.
    ///
    /// # Panics
    /// If it was awaited before.
    pub fn wait(mut self) -> Result<T, Lost> {
        if let Some(settled) = &self.settled {
            settled.wait()?;
        }
        Ok(self.take())
    }

    /// The same with another value.
    pub(crate) fn with<U>(self, value: U) -> Ticket<U> {
        Ticket { value: Some(value), settled: self.settled, place: self.place }
    }

    fn take(&mut self) -> T {
        self.value.take().expect("a ticket is asked until it is settled, and not again")
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, Lost>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = self.get_mut();
        if let Some(settled) = &ticket.settled {
            match settled.poll(&mut ticket.place, context.waker()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(lost)) => return Poll::Ready(Err(lost)),
                Poll::Ready(Ok(())) => {}
            }
        }
        Poll::Ready(Ok(ticket.take()))
    }
}

/// The value is moved out, never pinned.
impl<T> Unpin for Ticket<T> {}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

// === impl Settled ===

impl Settled {
    /// Tells everybody who waits.
    pub(crate) fn resolve(&self, result: Result<(), Lost>) {
        let mut settling = self.settling.lock();
        settling.result = Some(result);
        let wakers = std::mem::take(&mut settling.wakers);
        drop(settling);
        self.done.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn wait(&self) -> Result<(), Lost> {
        let mut settling = self.settling.lock();
        loop {
            if let Some(result) = &settling.result {
                return result.clone();
            }
            self.done.wait(&mut settling);
        }
    }

    fn poll(&self, place: &mut Option<usize>, waker: &Waker) -> Poll<Result<(), Lost>> {
        let mut settling = self.settling.lock();
        if let Some(result) = &settling.result {
            return Poll::Ready(result.clone());
        }
        match place.and_then(|place| settling.wakers.get_mut(place)) {
            Some(old) => old.clone_from(waker),
            None => {
                *place = Some(settling.wakers.len());
                settling.wakers.push(waker.clone());
            }
        }
        Poll::Pending
    }
}
