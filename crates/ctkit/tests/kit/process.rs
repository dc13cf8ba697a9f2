//! A process that can be stopped for a while, as by a debugger or a starved machine.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

/// Stops and continues a process.
#[derive(Clone, Default)]
pub(crate) struct Pause(Arc<Mutex<(bool, Option<Waker>)>>);

/// A process that can be stopped for a while.
pub(crate) struct Pausable<F> {
    process: Pin<Box<F>>,
    pause: Pause,
}

// === impl Pause ===

impl Pause {
    /// Stops it, or lets it go on.
    pub(crate) fn set(&self, paused: bool) {
        let waker = {
            let mut state = self.0.lock();
            state.0 = paused;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A process that this can stop.
    pub(crate) fn over<F: Future>(&self, process: F) -> Pausable<F> {
        Pausable { process: Box::pin(process), pause: self.clone() }
    }
}

// === impl Pausable ===

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut state = self.pause.0.lock();
            if state.0 {
                state.1 = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        self.process.as_mut().poll(cx)
    }
}
