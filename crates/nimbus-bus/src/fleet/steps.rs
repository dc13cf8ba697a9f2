//! A stream whose items are made one after the other, each when the one before was taken.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio_stream::Stream;

/// A stream of what `step` makes of `state`, until it makes nothing. Nothing is made ahead, so nothing piles up.
pub(crate) fn steps<S, T, F>(state: S, step: fn(S) -> F) -> impl Stream<Item = T>
where
    F: Future<Output = Option<(T, S)>>,
{
    Steps { step, pending: Some(Box::pin(step(state))) }
}

struct Steps<S, F> {
    step: fn(S) -> F,
    pending: Option<Pin<Box<F>>>,
}

// === impl Steps ===

impl<S, T, F: Future<Output = Option<(T, S)>>> Stream for Steps<S, F> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(pending) = &mut self.pending else { return Poll::Ready(None) };
        match ready!(pending.as_mut().poll(cx)) {
            None => {
                self.pending = None;
                Poll::Ready(None)
            }
            Some((item, state)) => {
                let next = (self.step)(state);
                self.pending = Some(Box::pin(next));
                Poll::Ready(Some(item))
            }
        }
    }
}
