//! How far some controllers are, and whoever wants to hear of it.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
};

use nimbus_core::panic_message;
use tokio::sync::watch;

/// How far some controllers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Not everything that was there has been looked at, or not all that came of it is on the bus.
    Syncing,
    /// Everything has been looked at and is on the bus, and there is more to do: something has changed.
    Busy,
    /// There is nothing left to do now. What is due later is not waited for: a retry, a requeue.
    Idle,
}

/// Somebody who wants to hear of stages.
pub(crate) struct StageCallback(Box<dyn FnMut(Stage) -> Call + Send>);

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

// === impl StageCallback ===

impl StageCallback {
    pub(crate) fn new<F>(mut callback: impl FnMut(Stage) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Box::new(move |stage| Box::pin(callback(stage))))
    }

    /// Calls it for each change, one after the other, until there are no more.
    pub(crate) fn run(mut self, mut stages: watch::Receiver<Stage>) -> Call {
        Box::pin(async move {
            while stages.changed().await.is_ok() {
                let stage = *stages.borrow_and_update();
                self.call(stage).await;
            }
        })
    }

    async fn call(&mut self, stage: Stage) {
        let callback = AssertUnwindSafe(&mut self.0);
        let begun = catch_unwind(move || {
            let callback = callback;
            (callback.0)(stage)
        });
        let ended = match begun {
            Ok(mut call) => {
                poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
                    Ok(poll) => poll.map(Ok),
                    Err(panic) => Poll::Ready(Err(panic)),
                })
                .await
            }
            Err(panic) => Err(panic),
        };
        if let Err(panic) = ended {
            tracing::error!(?stage, panic = panic_message(&*panic), "a callback for stages panicked");
        }
    }
}
