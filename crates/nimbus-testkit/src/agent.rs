//! Agents of a world: the real runtime, with the handlers of whoever tests them.

use std::{fmt, sync::Arc};

use nimbus_agent::{AgentBuilder, AgentStatus, Explanation, Handle, Handler, Spec};
use nimbus_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::{link::Link, world::World};

/// An agent that is about to be started; see [`World::agent`].
#[must_use]
pub struct AgentSetup<'a> {
    world: &'a World,
    id: String,
    /// How it is built, again after every restart.
    steps: Vec<Step>,
    /// Whether the world waits for its handlers.
    is_waited_for: bool,
}

/// A part of how an agent is built.
type Step = Box<dyn Fn(AgentBuilder) -> AgentBuilder + Send>;

/// An agent of a world. Clones are the same one; it runs until it is stopped, or the world ends.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    id: String,
    link: Link,
    steps: Mutex<Vec<Step>>,
    seed: u64,
    is_waited_for: bool,
    run: Mutex<Option<Run>>,
}

/// An agent that runs.
struct Run {
    handle: Handle,
    stop: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

// === impl AgentSetup ===

impl<'a> AgentSetup<'a> {
    pub(crate) fn new(world: &'a World, id: &str) -> Self {
        Self { world, id: id.to_owned(), steps: Vec::new(), is_waited_for: true }
    }

    /// A label, which the audiences of objects look at.
    pub fn label(self, key: &str, value: &str) -> Self {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.configure(move |builder| builder.label(&key, &value))
    }

    /// Handles objects of kind `K`. The handler outlives restarts of the agent, as the machine does that it stands for.
    pub fn handle<K: Spec, H: Handler<K>>(self, handler: H) -> Self {
        let handler = Arc::new(handler);
        self.configure(move |builder| builder.handle::<K, _>(handler.clone()))
    }

    /// Anything else that can be said of an agent, such as how long it waits after a failure.
    pub fn configure(mut self, step: impl Fn(AgentBuilder) -> AgentBuilder + Send + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// The world counts as settled, though its handlers run.
    pub(crate) fn not_waited_for(self) -> Self {
        Self { is_waited_for: false, ..self }
    }

    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be built like this; the message says why.
    pub fn start(self) -> Agent {
        let agent = Agent(Arc::new(Inner {
            id: self.id,
            link: self.world.net().link(),
            steps: Mutex::new(self.steps),
            seed: self.world.fork(),
            is_waited_for: self.is_waited_for,
            run: Mutex::new(None),
        }));
        agent.start();
        self.world.adopt(&agent);
        agent
    }
}

impl fmt::Debug for AgentSetup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSetup").field("id", &self.id).finish_non_exhaustive()
    }
}

// === impl Agent ===

impl Agent {
    /// Its name.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Its way to the bus, which may be cut.
    pub fn link(&self) -> &Link {
        &self.0.link
    }

    /// How it is doing; `None` if it does not run.
    pub fn status(&self) -> Option<AgentStatus> {
        self.handle().map(|handle| handle.status())
    }

    /// How it stands with an object, and why; `None` if it does not know it, or does not run.
    pub async fn explain(&self, key: &ObjectKey) -> Option<Explanation> {
        self.handle()?.explain(key.clone()).await.ok().flatten()
    }

    /// What else can be asked of it; `None` if it does not run.
    pub fn handle(&self) -> Option<Handle> {
        self.0.run.lock().as_ref().map(|run| run.handle.clone())
    }

    /// Starts it, unless it runs. What it held is gone from its memory, unless it was configured with a cache.
    ///
    /// # Panics
    /// If it cannot be built as it was configured.
    pub fn start(&self) {
        let mut run = self.0.run.lock();
        if run.is_some() {
            return;
        }
        let builder = nimbus_agent::Agent::builder(&self.0.id, BUS)
            .connector(self.0.link.clone())
            .seed(self.0.seed);
        let agent = self.0.steps.lock().iter().fold(builder, |builder, step| step(builder)).build();
        let agent = agent.unwrap_or_else(|error| panic!("agent {}: {error}", self.0.id));
        let (stop, stopped) = oneshot::channel();
        let (handle, id) = (agent.handle(), self.0.id.clone());
        let task = tokio::spawn(async move {
            let ended = agent.run_until(async { drop(stopped.await) }).await;
            ended.unwrap_or_else(|error| panic!("agent {id}: {error}"));
        });
        *run = Some(Run { handle, stop, task: AbortOnDropHandle::new(task) });
    }

    /// Stops it as an operator would: handlers end, and the bus is told.
    pub async fn stop(&self) {
        let run = self.0.run.lock().take();
        if let Some(run) = run {
            // Either fails only if it has ended by itself.
            let _ = run.stop.send(());
            drop(run.task.await);
        }
    }

    /// Ends it without a word, as the loss of power would.
    pub async fn crash(&self) {
        let run = self.0.run.lock().take();
        if let Some(run) = run {
            run.task.abort();
            drop(run.task.await);
        }
    }

    /// Whether the world waits for its handlers.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.0.is_waited_for
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.0.id)
            .field("link", &self.0.link)
            .finish_non_exhaustive()
    }
}

/// There is one bus in a world, whatever it is called.
pub(crate) const BUS: &str = "http://bus:7400";
