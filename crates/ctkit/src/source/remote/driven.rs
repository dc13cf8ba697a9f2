//! A stream that is written as a loop.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::mpsc;
use tokio_stream::Stream;

/// A stream that is written as a loop, which runs while somebody asks for the next item, and ends when the stream is
/// dropped. There is no task of its own.
pub(crate) struct Driven<T> {
    /// None when it has ended.
    driver: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    items: mpsc::Receiver<T>,
}

/// The loop waits until its item is taken: what it reads waits at the other end of the connection, not here.
const AHEAD: usize = 1;

// === impl Driven ===

impl<T> Driven<T> {
    pub(crate) fn new<F: Future<Output = ()> + Send + 'static>(driver: impl FnOnce(mpsc::Sender<T>) -> F) -> Self {
        let (sender, items) = mpsc::channel(AHEAD);
        Self { driver: Some(Box::pin(driver(sender))), items }
    }
}

impl<T> Stream for Driven<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Poll::Ready(item) = self.items.poll_recv(cx) {
            return Poll::Ready(item);
        }
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            // With it goes the sender, and the stream ends after what is left.
            self.driver = None;
        }
        self.items.poll_recv(cx)
    }
}
