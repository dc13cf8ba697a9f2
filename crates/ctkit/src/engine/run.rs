//! Runs reactions: side by side, each alone with its panics and its deadline.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context as Poller, Poll},
    time::Duration,
};

use nimbus_core::{Failure, ObjectKey, panic_message};
use nimbus_store::Record;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    action::Action,
    context::{Context, Wishes},
    engine::{event::Event, starting::Sort, tenure::Tenure},
    queue::Lane,
    reactor::Reaction,
};

/// A reaction that is to begin.
pub(crate) struct Start {
    pub(crate) lane: Lane,
    pub(crate) key: ObjectKey,
    pub(crate) sort: Sort,
    pub(crate) cx: Context,
    pub(crate) reaction: Reaction,
    /// It is given up after this long.
    pub(crate) deadline: Duration,
    /// It is given up when this ends.
    pub(crate) tenure: Tenure,
}

/// A reaction that is over.
pub(crate) struct Finished {
    pub(crate) lane: Lane,
    pub(crate) key: ObjectKey,
    pub(crate) sort: Sort,
    /// What it was about.
    pub(crate) record: Arc<Record>,
    /// What it wanted.
    pub(crate) wishes: Wishes,
    pub(crate) ending: Ending,
    pub(crate) tenure: Tenure,
}

/// How a reaction ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Returned(Result<Action, Failure>),
    Panicked(String),
    /// The object is somebody else's by now.
    GivenUp,
}

/// Runs reactions, and sends what came of them to the engine.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) tracker: TaskTracker,
    /// Ends all that is under way.
    pub(crate) abort: CancellationToken,
    pub(crate) events: mpsc::Sender<Event>,
}

// === impl Runner ===

impl Runner {
    /// Runs some reactions. Those that need not wait for anything are done one after the other; each that has to wait goes
    /// on by itself, so that nobody waits for it.
    pub(crate) fn run(&self, chunk: Vec<Start>) {
        let runner = self.clone();
        self.tracker.spawn(async move {
            let mut finished = Vec::with_capacity(chunk.len());
            for mut start in chunk {
                if start.tenure.is_over() {
                    finished.push(start.finish(Ending::GivenUp));
                    continue;
                }
                let first = poll_fn(|cx| Poll::Ready(poll(&mut start.reaction, cx))).await;
                match first {
                    Poll::Ready(ending) => finished.push(start.finish(ending)),
                    Poll::Pending => runner.run_alone(start),
                }
            }
            runner.send(finished).await;
        });
    }

    fn run_alone(&self, mut start: Start) {
        let runner = self.clone();
        self.tracker.spawn(async move {
            let deadline = Instant::now() + start.deadline;
            let ending = tokio::select! {
                ending = poll_fn(|cx| poll(&mut start.reaction, cx)) => ending,
                () = tokio::time::sleep_until(deadline) => Ending::Returned(Err(too_long(start.deadline))),
                () = start.tenure.over() => Ending::GivenUp,
                () = runner.abort.cancelled() => return,
            };
            runner.send(vec![start.finish(ending)]).await;
        });
    }

    async fn send(&self, finished: Vec<Finished>) {
        if !finished.is_empty() {
            // Nobody listens once the engine has stopped, and then nobody wants to know.
            drop(self.events.send(Event::Finished(finished)).await);
        }
    }
}

// === impl Start ===

impl Start {
    fn finish(self, ending: Ending) -> Finished {
        let Self { lane, key, sort, cx, tenure, .. } = self;
        let (record, wishes) = (cx.object().clone(), cx.take());
        Finished { lane, key, sort, record, wishes, ending, tenure }
    }
}

/// A panic is a failure of this object alone, here as a failure like others.
pub(crate) async fn caught<T>(
    look: &mut std::pin::Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>,
) -> Result<T, Failure> {
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| look.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(Failure::new(panic_message(&*panic).to_owned()).with_code("PANIC"))),
    })
    .await
}

/// A panic is a failure of this object alone.
fn poll(reaction: &mut Reaction, cx: &mut Poller<'_>) -> Poll<Ending> {
    match catch_unwind(AssertUnwindSafe(|| reaction.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ending::Returned),
        Err(panic) => Poll::Ready(Ending::Panicked(panic_message(&*panic).to_owned())),
    }
}

fn too_long(deadline: Duration) -> Failure {
    Failure::new(format!("took longer than {deadline:?} and was given up")).with_code("DEADLINE")
}
