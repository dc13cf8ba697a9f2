//! Agents: how they are built, and how they run.

use std::{collections::BTreeMap, future::Future, path::PathBuf, sync::Arc, time::Duration};

use nimbus_client::{Connector, Endpoint, Tcp};
use nimbus_core::{AgentId, Backoff, Invalid, Kind, Labels, Spec};
use nimbus_wire::v1;
use prost_types::Any;

use crate::{
    board::{Policies, Policy, Replace},
    cache::CacheError,
    handle::{self, Handle},
    handler::Handler,
    kinds::{self, Kinds},
    metrics::Metrics,
    settings::Settings,
    subscription::Subscription,
    worker::Worker,
};

/// An agent: makes true on this machine what the bus says, and reports how it went.
pub struct Agent {
    worker: Worker,
    handle: Handle,
}

/// Builds an [`Agent`].
#[must_use]
pub struct AgentBuilder {
    id: String,
    endpoints: Vec<String>,
    labels: BTreeMap<String, String>,
    handlers: Kinds,
    extra_kinds: Vec<Kind>,
    policies: BTreeMap<Kind, Policy>,
    policy: Policy,
    filter: Option<v1::Filter>,
    connector: Arc<dyn Connector>,
    software: String,
    cache: Option<PathBuf>,
    trust: bool,
    detached_after: Duration,
    concurrency: usize,
    reconnect: Backoff,
    retry: Backoff,
    quarantine: Backoff,
    deadline: Option<Duration>,
    grace: Duration,
    seed: Option<u64>,
    inline_disk: bool,
    metrics: Metrics,
}

/// Why an agent could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The id or a label is not one.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// An endpoint is not one.
    #[error("endpoint {0}")]
    Endpoint(String),
    /// Nothing is handled.
    #[error("an agent without handlers has nothing to do (hint: call handle)")]
    NoHandlers,
    /// No kinds are named.
    #[error("no kinds to subscribe to (hint: call kind)")]
    NoKinds,
    /// Nothing could ever run.
    #[error("concurrency must be at least 1")]
    NoConcurrency,
}

/// Why an agent could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// It could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Its memory on disk cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// A bus that is there answers within a fraction of this.
const DETACHED_AFTER: Duration = Duration::from_secs(5);

/// Handlers mostly wait for something else than the processor.
const CONCURRENCY: usize = 16;

/// Long enough for most handlers to finish, short enough for a service manager not to kill the agent.
const GRACE: Duration = Duration::from_secs(10);

/// A handler that panics is wrong, and seldom right a moment later.
const QUARANTINE: Backoff = Backoff { base: Duration::from_secs(60), max: Duration::from_secs(3600) };

/// Nobody waits for longer, and clocks can count that far.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

// === impl Agent ===

impl Agent {
    /// Builds an agent of that name, which subscribes at that address.
    pub fn builder(id: &str, endpoint: &str) -> AgentBuilder {
        AgentBuilder {
            id: id.to_owned(),
            endpoints: vec![endpoint.to_owned()],
            labels: BTreeMap::new(),
            handlers: Kinds::new(),
            extra_kinds: Vec::new(),
            policies: BTreeMap::new(),
            policy: Policy::default(),
            filter: None,
            connector: Arc::new(Tcp),
            software: concat!("nimbus-agent/", env!("CARGO_PKG_VERSION")).to_owned(),
            cache: None,
            trust: false,
            detached_after: DETACHED_AFTER,
            concurrency: CONCURRENCY,
            reconnect: Backoff::default(),
            retry: Backoff::default(),
            quarantine: QUARANTINE,
            deadline: None,
            grace: GRACE,
            seed: None,
            inline_disk: false,
            metrics: Metrics::default(),
        }
    }

    /// What others can ask of it while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `shutdown`, then lets handlers that run finish, and tells the bus.
    ///
    /// A bus that cannot be reached, or goes away, is no error: the agent keeps what it has as it should be, and comes
    /// back.
    ///
    /// # Errors
    /// If its memory on disk cannot be used: another process has it, or there is no place for it.
    pub async fn run_until(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), AgentError> {
        self.worker.run(shutdown).await
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("handle", &self.handle).finish_non_exhaustive()
    }
}

// === impl AgentBuilder ===

impl AgentBuilder {
    /// Another address of the same bus, or of another that has the same objects.
    pub fn endpoint(mut self, endpoint: &str) -> Self {
        self.endpoints.push(endpoint.to_owned());
        self
    }

    /// A label, which the audiences of objects look at.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Handles objects of kind `K`. A struct may handle several kinds: share it in an [`Arc`].
    pub fn handle<K: Spec, H: Handler<K>>(mut self, handler: H) -> Self {
        self.handlers.insert(K::kind(), kinds::typed(handler));
        self
    }

    /// Handles objects of a kind that is only known at run time; their specs stay packed.
    pub fn handle_packed<H: Handler<Any>>(mut self, kind: Kind, handler: H) -> Self {
        self.handlers.insert(kind, kinds::packed(handler));
        self
    }

    /// A kind to subscribe to; for [`AgentBuilder::subscribe`], which has no handlers.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.extra_kinds.push(kind);
        self
    }

    /// Only objects that pass a filter.
    pub fn filter(mut self, filter: v1::Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// In which order objects of kind `K` that come together with removals are handled.
    pub fn replace<K: Spec>(mut self, replace: Replace) -> Self {
        self.policies.entry(K::kind()).or_insert_with(|| self.policy.clone()).replace = replace;
        self
    }

    /// Looks this often whether the machine still is as it was left. Never, unless set.
    pub fn observe_every(mut self, interval: Duration) -> Self {
        // No machine can be looked at without a pause.
        let interval = interval.clamp(Duration::from_millis(1), LONGEST);
        self.policy.observe_every = Some(interval);
        self.policies.values_mut().for_each(|policy| policy.observe_every = Some(interval));
        self
    }

    /// Keeps position and objects in this file, so that a restart is sent the difference only, and needs no bus.
    pub fn cache(mut self, path: impl Into<PathBuf>) -> Self {
        self.cache = Some(path.into());
        self
    }

    /// What was applied before a restart of this process still is. Without it, everything is applied again when the agent
    /// starts: it cannot know whether what handlers did has outlived it.
    pub fn trust_applied(mut self) -> Self {
        self.trust = true;
        self
    }

    /// After a start, waits this long for a bus before it applies its last good state.
    pub fn detached_after(mut self, wait: Duration) -> Self {
        self.detached_after = wait;
        self
    }

    /// Handlers that run at the same time.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// How long to wait between attempts to reach a bus.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnect = backoff;
        self
    }

    /// How long to wait between attempts to apply an object.
    pub fn retry(mut self, backoff: Backoff) -> Self {
        self.retry = backoff;
        self
    }

    /// The same after a handler has panicked.
    pub fn quarantine(mut self, backoff: Backoff) -> Self {
        self.quarantine = backoff;
        self
    }

    /// A call of a handler that takes longer is dropped, and counts as failed. Without it, one that takes long is reported
    /// as such.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// When stopping, waits this long for handlers that run.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What operators see as the software of this agent.
    pub fn software(mut self, software: &str) -> Self {
        software.clone_into(&mut self.software);
        self
    }

    /// Where randomness begins, so that a run can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Writes to disk on the thread of the runtime, which then does nothing else. For simulations, which repeat a run only
    /// if no other thread takes part in it.
    #[cfg(feature = "sim")]
    pub fn inline_disk(mut self) -> Self {
        self.inline_disk = true;
        self
    }

    /// How connections are opened.
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.connector = Arc::new(connector);
        self
    }

    /// Where it counts.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Checks everything and makes the agent.
    ///
    /// # Errors
    /// If something is missing or wrong; the message says what.
    pub fn build(self) -> Result<Agent, BuildError> {
        if self.handlers.is_empty() {
            return Err(BuildError::NoHandlers);
        }
        if self.concurrency == 0 {
            return Err(BuildError::NoConcurrency);
        }
        let handlers = self.handlers.clone();
        let policies = Policies::new(self.policy.clone(), self.policies.clone(), handlers.keys().cloned().collect());
        let metrics = self.metrics.clone();
        let settings = self.settings()?;
        let (handle, commands, status) = handle::channel();
        let worker = Worker::new(settings, handlers, policies, metrics, commands, status);
        Ok(Agent { worker, handle })
    }

    /// Builds the agent and runs it until `shutdown`.
    ///
    /// # Errors
    /// As [`AgentBuilder::build`] and [`Agent::run_until`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), AgentError> {
        self.build()?.run_until(shutdown).await
    }

    /// Subscribes without handlers: a stream of events, for those who want to do the rest themselves.
    ///
    /// # Errors
    /// If something is missing or wrong, or the memory on disk cannot be used.
    pub fn subscribe(self) -> Result<Subscription, AgentError> {
        if self.handlers.is_empty() && self.extra_kinds.is_empty() {
            return Err(BuildError::NoKinds.into());
        }
        Ok(Subscription::open(self.settings()?)?)
    }

    fn settings(self) -> Result<Settings, BuildError> {
        let clamp = |backoff: Backoff| Backoff { base: backoff.base.min(LONGEST), max: backoff.max.min(LONGEST) };
        let endpoints = self.endpoints.iter().map(|endpoint| Endpoint::parse(endpoint));
        let kinds = self.handlers.keys().chain(&self.extra_kinds);
        Ok(Settings {
            id: AgentId::new(&self.id)?,
            endpoints: endpoints.collect::<Result<_, _>>().map_err(BuildError::Endpoint)?,
            labels: Labels::new(&self.labels)?,
            kinds: kinds.map(ToString::to_string).collect(),
            connector: self.connector,
            filter: self.filter,
            software: self.software,
            cache: self.cache,
            trust: self.trust,
            detached_after: self.detached_after.min(LONGEST),
            concurrency: self.concurrency,
            reconnect: clamp(self.reconnect),
            retry: clamp(self.retry),
            quarantine: clamp(self.quarantine),
            deadline: self.deadline.map(|deadline| deadline.min(LONGEST)),
            grace: self.grace.min(LONGEST),
            seed: self.seed.unwrap_or_else(rand::random),
            inline_disk: self.inline_disk,
        })
    }
}

impl std::fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<_> = self.handlers.keys().collect();
        f.debug_struct("AgentBuilder")
            .field("id", &self.id)
            .field("endpoints", &self.endpoints)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}
