//! Runs reactions: side by side, each alone with its panics and its deadline.

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context as Poller, Poll},
    time::Duration,
};

use nimbus_core::{Failure, Kind, ObjectKey, panic_message};
use nimbus_store::{Draft, Record};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    action::Action,
    context::{Context, Surroundings, Wishes},
    engine::{event::Event, starting::Sort, tenure::Tenure},
    few::Few,
    queue::{Causes, Lane},
    reactor::{Call, Caller, ErasedReactor, Reaction},
};

/// A reaction that is to begin.
pub(crate) struct Start {
    pub(crate) lane: Lane,
    pub(crate) key: ObjectKey,
    pub(crate) sort: Sort,
    pub(crate) work: Work,
    pub(crate) common: Arc<Common>,
    /// It is given up when this ends.
    pub(crate) tenure: Tenure,
}

/// What is to be done.
pub(crate) enum Work {
    /// The reactor is called.
    Call { call: Call, subject: Arc<Record>, circumstances: (u32, Causes), publishes: bool },
    /// Something more than that, which has begun.
    Begun(Context, Reaction),
}

/// What is the same for all reactions of a controller.
pub(crate) struct Common {
    pub(crate) reactor: Arc<dyn ErasedReactor>,
    pub(crate) surroundings: Arc<Surroundings>,
    /// What it publishes.
    pub(crate) outputs: BTreeSet<Kind>,
    /// Reactions are given up after this long.
    pub(crate) deadline: Duration,
}

/// A reaction that is over.
pub(crate) struct Finished {
    pub(crate) lane: Lane,
    pub(crate) key: ObjectKey,
    pub(crate) sort: Sort,
    /// What it was about.
    pub(crate) record: Arc<Record>,
    /// What it wanted to be published.
    pub(crate) children: Few<Draft>,
    /// What else it wanted.
    pub(crate) wishes: Wishes,
    pub(crate) ending: Ending,
    pub(crate) tenure: Tenure,
}

/// A reaction that has to wait.
pub(crate) struct Alone {
    pub(crate) lane: Lane,
    pub(crate) key: ObjectKey,
    pub(crate) sort: Sort,
    pub(crate) cx: Context,
    pub(crate) reaction: Reaction,
    pub(crate) tenure: Tenure,
}

/// What calls one after the other have in common.
#[derive(Default)]
pub(crate) struct Calls {
    /// For the controller of the last call.
    caller: Option<(Arc<Common>, Box<dyn Caller>)>,
    /// Circumstances that nobody needs any more.
    spare: Option<Context>,
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
            let mut calls = Calls::default();
            for start in chunk {
                let Start { lane, key, sort, work, common, tenure } = start;
                let (cx, first) = match work {
                    _ if tenure.is_over() => {
                        finished.push(Finished::given_up(lane, key, sort, work.subject().clone(), tenure));
                        continue;
                    }
                    Work::Call { call, subject, circumstances, publishes } => {
                        let cx = calls.context(&common, subject, circumstances, publishes);
                        let first = calls.first_poll(&common, &cx, call).await;
                        (cx, first)
                    }
                    Work::Begun(cx, mut reaction) => {
                        let first = poll_fn(|poller| Poll::Ready(poll(&mut reaction, poller))).await;
                        (cx, first.ok_or(reaction))
                    }
                };
                match first {
                    Ok(ending) => {
                        finished.push(Finished::of(&cx, lane, key, sort, ending, tenure));
                        calls.keep(cx);
                    }
                    Err(reaction) => runner.run_alone(Alone { lane, key, sort, cx, reaction, tenure }, common.deadline),
                }
            }
            runner.send(finished).await;
        });
    }

    pub(crate) fn run_alone(&self, mut alone: Alone, deadline: Duration) {
        let runner = self.clone();
        self.tracker.spawn(async move {
            let until = Instant::now() + deadline;
            let ending = tokio::select! {
                ending = poll_fn(|cx| poll(&mut alone.reaction, cx).map_or(Poll::Pending, Poll::Ready)) => ending,
                () = tokio::time::sleep_until(until) => Ending::Returned(Err(too_long(deadline))),
                () = alone.tenure.over() => Ending::GivenUp,
                () = runner.abort.cancelled() => return,
            };
            runner.send(vec![alone.finish(ending)]).await;
        });
    }

    pub(crate) async fn send(&self, finished: Vec<Finished>) {
        if !finished.is_empty() {
            // Nobody listens once the engine has stopped, and then nobody wants to know.
            drop(self.events.send(Event::Finished(finished)).await);
        }
    }
}

// === impl Work ===

impl Work {
    fn subject(&self) -> &Arc<Record> {
        match self {
            Self::Call { subject, .. } => subject,
            Self::Begun(cx, _) => cx.object(),
        }
    }
}

// === impl Finished ===

impl Finished {
    /// How the reaction ended that these were the circumstances of.
    pub(crate) fn of(cx: &Context, lane: Lane, key: ObjectKey, sort: Sort, ending: Ending, tenure: Tenure) -> Self {
        let (children, wishes) = cx.take();
        Self { lane, key, sort, record: cx.object().clone(), children, wishes, ending, tenure }
    }

    /// It did not begin.
    pub(crate) fn given_up(lane: Lane, key: ObjectKey, sort: Sort, record: Arc<Record>, tenure: Tenure) -> Self {
        let (children, wishes) = Default::default();
        Self { lane, key, sort, record, children, wishes, ending: Ending::GivenUp, tenure }
    }
}

// === impl Alone ===

impl Alone {
    fn finish(self, ending: Ending) -> Finished {
        let Self { lane, key, sort, cx, tenure, .. } = self;
        Finished::of(&cx, lane, key, sort, ending, tenure)
    }
}

// === impl Calls ===

impl Calls {
    /// The circumstances of the next call: those of the last one, if nobody has kept them.
    pub(crate) fn context(
        &mut self,
        common: &Common,
        subject: Arc<Record>,
        circumstances: (u32, Causes),
        publishes: bool,
    ) -> Context {
        let spare = self.spare.take();
        Context::renewed(spare, &common.surroundings, subject, circumstances, publishes)
    }

    /// Begins a call; the reaction itself if it has to wait.
    pub(crate) async fn first_poll(
        &mut self,
        common: &Arc<Common>,
        cx: &Context,
        call: Call,
    ) -> Result<Ending, Reaction> {
        // Most of them are of one controller.
        let caller = match &mut self.caller {
            Some((of, caller)) if Arc::ptr_eq(of, common) => caller,
            other => &mut other.insert((common.clone(), common.reactor.clone().caller())).1,
        };
        caller.begin(cx.clone(), call);
        match poll_fn(|poller| Poll::Ready(caught_poll(|| caller.poll(poller)))).await {
            Some(Ending::Panicked(message)) => {
                // Whatever it has left behind is not there for others.
                drop(caller.take());
                Ok(Ending::Panicked(message))
            }
            Some(ending) => Ok(ending),
            None => Err(caller.take()),
        }
    }

    /// Nobody needs these any more.
    pub(crate) fn keep(&mut self, cx: Context) {
        self.spare = Some(cx);
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

/// A panic is a failure of this object alone. `None` if it has to wait.
fn poll(reaction: &mut Reaction, cx: &mut Poller<'_>) -> Option<Ending> {
    caught_poll(|| reaction.as_mut().poll(cx))
}

fn caught_poll(poll: impl FnOnce() -> Poll<Result<Action, Failure>>) -> Option<Ending> {
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(Poll::Ready(result)) => Some(Ending::Returned(result)),
        Ok(Poll::Pending) => None,
        Err(panic) => Some(Ending::Panicked(panic_message(&*panic).to_owned())),
    }
}

fn too_long(deadline: Duration) -> Failure {
    Failure::new(format!("took longer than {deadline:?} and was given up")).with_code("DEADLINE")
}
