//! Calls of handlers that are under way.

use std::{collections::HashMap, sync::Arc, time::Duration};

use nimbus_core::{AgentId, Failure, ObjectKey, panic_message};
use tokio::{
    task::{self, JoinError, JoinSet},
    time::{Instant, timeout},
};

use crate::{
    board::{Job, Outcome, Work},
    cache::{Delta, Keeper},
    handler::{Context, Observation, Reason},
    kinds::{Erased, Kinds},
    metrics::Metrics,
    worker::Running,
};

/// Calls of handlers that are under way. They end with this value.
pub(crate) struct Jobs {
    agent: AgentId,
    kinds: Kinds,
    keeper: Keeper,
    deadline: Option<Duration>,
    metrics: Metrics,
    tasks: JoinSet<Outcome>,
    keys: HashMap<task::Id, (ObjectKey, &'static str)>,
}

/// A disk that takes longer does not work.
const DISK_PATIENCE: Duration = Duration::from_secs(10);

// === impl Jobs ===

impl Jobs {
    pub(crate) fn new(
        agent: AgentId,
        kinds: Kinds,
        keeper: Keeper,
        deadline: Option<Duration>,
        metrics: Metrics,
    ) -> Self {
        Self { agent, kinds, keeper, deadline, metrics, tasks: JoinSet::new(), keys: HashMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Begins a call.
    pub(crate) fn begin(&mut self, job: Job) {
        let Job { key, work, begins } = job;
        let call = match &work {
            Work::Apply { .. } => "apply",
            Work::Remove { .. } => "remove",
            Work::Observe { .. } => "observe",
        };
        let handler = match self.handler(&key, &work) {
            Ok(handler) => handler,
            Err(failure) => {
                let task = self.tasks.spawn(async { Outcome::Refused(failure) });
                self.keys.insert(task.id(), (key, call));
                return;
            }
        };
        let durable = begins.then(|| self.keeper.clone());
        if begins && let Work::Apply { item, .. } | Work::Remove { item, .. } = &work {
            self.keeper
                .save(Delta { started: vec![(key.clone(), Some(item.clone()))], ..Delta::default() });
        }
        let (agent, deadline) = (self.agent.clone(), self.deadline);
        let task = self.tasks.spawn(async move {
            // If the agent dies in the middle of this, it must know that it had begun. If the disk fails or hangs, it goes
            // on: what should be true matters more than what should be remembered.
            if let Some(keeper) = durable {
                drop(timeout(DISK_PATIENCE, keeper.barrier()).await);
            }
            match deadline {
                None => perform(handler, agent, work).await,
                Some(limit) => match timeout(limit, perform(handler, agent, work)).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        let message = format!("not done within {:.1} s", limit.as_secs_f64());
                        Outcome::Failed(Failure::new(message).with_code("DEADLINE"))
                    }
                },
            }
        });
        self.keys.insert(task.id(), (key, call));
    }

    /// The handler of a kind, if it can read the object.
    fn handler(&self, key: &ObjectKey, work: &Work) -> Result<Arc<dyn Erased>, Failure> {
        // It was handled by the program that ran here before.
        let none = || Failure::new(format!("no handler for {}", key.kind())).with_code("NO_HANDLER");
        let handler = self.kinds.get(key.kind()).ok_or_else(none)?;
        match work {
            Work::Apply { item, .. } | Work::Remove { item, .. } | Work::Observe { item } => handler.check(item)?,
        }
        Ok(handler.clone())
    }

    /// The next call that ends; never, if there is none.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped.
    pub(crate) async fn next(&mut self) -> (ObjectKey, Outcome) {
        loop {
            let Some(done) = self.tasks.join_next_with_id().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let (id, outcome) = match done {
                Ok((id, outcome)) => (id, outcome),
                Err(error) => (error.id(), ended(error)),
            };
            if let Some((key, call)) = self.keys.remove(&id) {
                self.metrics.call(call, label(&outcome));
                return (key, outcome);
            }
        }
    }
}

// === impl Running ===

impl Running {
    /// Takes note of how a call ended.
    pub(crate) fn finish(&mut self, key: &ObjectKey, outcome: Outcome) {
        let now = Instant::now();
        match &outcome {
            Outcome::Failed(failure) | Outcome::Refused(failure) => {
                tracing::warn!(agent.id = %self.settings.id, object = %key, %failure, "failed");
            }
            Outcome::Panicked(message) => {
                tracing::error!(agent.id = %self.settings.id, object = %key, message, "the handler panicked, quarantined");
                self.journal.note("Panic", Some(key), message, now);
            }
            Outcome::Observed(Observation::Drifted(message)) => {
                tracing::warn!(agent.id = %self.settings.id, object = %key, message, "drifted, applying again");
                self.metrics.drift.inc();
                self.journal.note("Drift", Some(key), message, now);
            }
            _ => {}
        }
        let detail = match &outcome {
            Outcome::Applied(status) => status.detail.clone(),
            _ => None,
        };
        let Some(finished) = self.board.finish(key, outcome, now) else { return };
        let Some(applied) = finished.applied else { return };
        match &applied {
            Some(item) => {
                tracing::debug!(agent.id = %self.settings.id, object = %key, generation = %item.generation(), "applied");
                self.reporter.set_status(key, detail.map(|detail| (item.generation(), detail)));
            }
            None => {
                tracing::debug!(agent.id = %self.settings.id, object = %key, "removed");
                self.reporter.set_status(key, None);
            }
        }
        let started = vec![(key.clone(), None)];
        self.keeper
            .save(Delta { applied: vec![(key.clone(), applied)], started, ..Delta::default() });
    }
}

async fn perform(handler: Arc<dyn Erased>, agent: AgentId, work: Work) -> Outcome {
    let context = |reason, attempt, previous| Context { agent, reason, attempt, previous };
    let outcome = match work {
        Work::Apply { item, previous, reason, attempt } => {
            handler.apply(context(reason, attempt, previous), item).await.map(Outcome::Applied)
        }
        Work::Remove { item, attempt } => {
            let reason = if attempt == 0 { Reason::Changed } else { Reason::Retry };
            handler.remove(context(reason, attempt, None), item).await.map(|()| Outcome::Removed)
        }
        Work::Observe { item } => handler.observe(context(Reason::Drift, 0, None), item).await.map(Outcome::Observed),
    };
    outcome.unwrap_or_else(Outcome::Failed)
}

fn ended(error: JoinError) -> Outcome {
    let Ok(panic) = error.try_into_panic() else { return Outcome::Dropped };
    Outcome::Panicked(panic_message(&*panic).to_owned())
}

fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Applied(_) | Outcome::Removed | Outcome::Observed(_) => "ok",
        Outcome::Failed(_) => "failed",
        Outcome::Refused(_) => "refused",
        Outcome::Panicked(_) => "panicked",
        Outcome::Dropped => "dropped",
    }
}
