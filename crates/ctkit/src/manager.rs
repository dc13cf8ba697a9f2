//! Many controllers on one source, and the bus that they publish on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use nimbus_core::KeyMap;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};
use tokio_stream::{StreamExt as _, wrappers::TcpListenerStream};
use tokio_util::sync::CancellationToken;

use crate::{
    controller::{Controller, ControllerError},
    engine::{self, Engine, Listener, agents::Agents, flights::Flights},
    erased::{ErasedTarget, ErasedWriter, Shared},
    handle::Handle,
    instances::{Instances, InstancesError},
    leases::Leases,
    plan::Planned,
    queue::{self, Queue},
    ready::Readiness,
    reflector::{ReflectorConfig, Reflectors},
    source::{Source, Store},
    stage::{Stage, StageCallback},
    target::Target,
};

/// Many controllers on one source, and the bus that they publish on.
///
/// ```no_run
/// # use ctkit::{functions, Action, Controller, Manager, ManagerError, Store};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Policy { #[prost(string, tag = "1")] text: String }
/// # impl prost::Name for Policy { const NAME: &'static str = "Policy"; const PACKAGE: &'static str = "demo.v1"; }
/// # async fn run(store: Store, listener: tokio::net::TcpListener, stop: impl Future<Output = ()> + Send + 'static)
/// # -> Result<(), ManagerError> {
/// # let policies = functions::<Policy>();
/// Manager::builder(store)
///     .serve_bus(listener)
///     .controller(Controller::new(policies).publishes::<Policy>())
///     .run_until(stop)
///     .await
/// # }
/// ```
pub struct Manager {
    engine: Engine,
    handle: Handle,
    keeper: Keeper,
    server: Option<Server>,
    callbacks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    grace: Duration,
    stop: CancellationToken,
}

/// How a manager is made.
#[must_use]
pub struct ManagerBuilder<S> {
    source: Arc<S>,
    target: Arc<dyn ErasedTarget>,
    /// Whether source and bus are the same.
    same: bool,
    controllers: Vec<Controller>,
    instances: Instances,
    server: Option<Box<dyn FnOnce(CancellationToken) -> Server + Send>>,
    grace: Duration,
    linger: Duration,
    dry_run: bool,
    seed: Option<u64>,
    callbacks: Vec<(Vec<String>, StageCallback)>,
}

/// Why a manager cannot run, or has stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A controller cannot be run.
    #[error(transparent)]
    Controller(#[from] ControllerError),
    /// The instances cannot be set up like this.
    #[error(transparent)]
    Instances(#[from] InstancesError),
    /// The bus cannot be served any more.
    #[error("the bus cannot be served")]
    Serve(#[from] nimbus_bus::ServeError),
}

/// Renews leases until it is told to stop.
type Keeper = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a bus until it is told to stop.
type Server = Pin<Box<dyn Future<Output = Result<(), nimbus_bus::ServeError>> + Send>>;

/// What runs has this long to end, unless somebody says otherwise. Orchestrators kill after thirty seconds.
const GRACE: Duration = Duration::from_secs(20);

/// The watch of a kind that nobody refers to any more is kept for so long: most come back soon.
const LINGER: Duration = Duration::from_secs(30);

/// Reactions of all controllers at once.
const CONCURRENCY: usize = 2048;

// === impl Manager ===

impl Manager {
    /// Controllers for objects of this source, which publish there as well.
    pub fn builder<S: Source + Target + Leases>(source: S) -> ManagerBuilder<S> {
        let source = Arc::new(source);
        let target = Arc::new(Shared(source.clone()));
        ManagerBuilder::new(source, target, true)
    }

    /// Controllers for objects of one source, which publish on another bus.
    pub fn between<S: Source + Leases>(source: S, target: impl Target) -> ManagerBuilder<S> {
        ManagerBuilder::new(Arc::new(source), Arc::new(Shared(Arc::new(target))), false)
    }

    /// Looks into it, and steers it, while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `shutdown`; then begins nothing new, ends what runs, writes what is to be written, hands over what it
    /// holds, and is done in bounded time.
    ///
    /// # Errors
    /// If the bus cannot be served any more.
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()> + Send) -> Result<(), ManagerError> {
        let stop = self.stop.clone();
        let served = async {
            match self.server.take() {
                Some(server) => server.await,
                None => std::future::pending().await,
            }
        };
        let (runner, grace) = (self.engine.runner.clone(), self.grace);
        // Whoever drops this ends what it has begun.
        let _end = runner.abort.clone().drop_guard();
        for callback in self.callbacks {
            let stop = runner.abort.clone();
            runner.tracker.spawn(stop.run_until_cancelled_owned(callback));
        }
        let work = async {
            tokio::join!(self.keeper, self.engine.run());
        };
        let deadline = async {
            shutdown.await;
            tracing::info!("stopping");
            stop.cancel();
            tokio::time::sleep(grace).await;
            tracing::warn!("some reactions did not end in time, and are given up");
        };
        let result = tokio::select! {
            served = served => served.map_err(ManagerError::from),
            () = async { tokio::select! { () = work => {}, () = deadline => {} } } => Ok(()),
        };
        runner.abort.cancel();
        runner.tracker.close();
        // Whoever does not end even now holds up nobody.
        drop(tokio::time::timeout(engine::LAST_ORDERS, runner.tracker.wait()).await);
        result
    }

    /// Looks at every object once, and says what would come of it. Nothing is published, and nothing is written.
    pub async fn plan(mut self) -> Vec<Planned> {
        self.engine.dry_run = true;
        let stop = self.stop.clone();
        let handle = self.handle.clone();
        let runner = self.engine.runner.clone();
        let settle = async {
            // An error means that it has stopped, and then everything is settled.
            drop(handle.settled().await);
            stop.cancel();
        };
        tokio::join!(settle, self.keeper, self.engine.run());
        runner.abort.cancel();
        self.engine.plans
    }
}

// === impl ManagerBuilder ===

impl<S: Source + Leases> ManagerBuilder<S> {
    fn new(source: Arc<S>, target: Arc<dyn ErasedTarget>, same: bool) -> Self {
        Self {
            source,
            target,
            same,
            controllers: Vec::new(),
            instances: Instances::alone(),
            server: None,
            grace: GRACE,
            linger: LINGER,
            dry_run: false,
            seed: None,
            callbacks: Vec::new(),
        }
    }

    /// One more controller.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Divides the work with other instances of the same program.
    pub fn instances(self, instances: Instances) -> Self {
        Self { instances, ..self }
    }

    /// What runs when it is told to stop has so long to end.
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The watch of a kind that nobody refers to any more is kept for so long.
    pub fn linger(self, linger: Duration) -> Self {
        Self { linger, ..self }
    }

    /// Calls this whenever these controllers, or all if none is named, have got to another [`Stage`]: when everything that
    /// is there has been looked at and is on the bus, and whenever there is nothing left to do. A new bus begins anew.
    ///
    /// It is told the newest stage only: one that is over before the call for an earlier one has ended is left out. A panic
    /// in it is logged.
    ///
    /// ```
    /// # use ctkit::{Manager, Stage, Store};
    /// let manager = Manager::builder(Store::in_memory()).on_stage(["policies", "zones"], |stage| async move {
    ///     if stage == Stage::Idle {
    ///         println!("everything is published");
    ///     }
    /// });
    /// ```
    pub fn on_stage<F>(
        mut self,
        controllers: impl IntoIterator<Item = impl Into<String>>,
        callback: impl FnMut(Stage) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let names = controllers.into_iter().map(Into::into).collect();
        self.callbacks.push((names, StageCallback::new(callback)));
        self
    }

    /// Where randomness comes from, so that simulations can be repeated.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Everything but the effects; see [`Manager::plan`].
    pub fn dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }
}

impl<S: Source + Leases> ManagerBuilder<S> {
    /// A manager that is ready to run.
    ///
    /// # Errors
    /// If a controller or the instances cannot be run like this.
    pub fn build(self) -> Result<Manager, ManagerError> {
        let seed = self.seed.unwrap_or_else(rand::random);
        let mut rng = SmallRng::seed_from_u64(seed);
        let stop = CancellationToken::new();
        let (shares, shard_events, keeper) = self.instances.clone().seed(rng.random()).build(self.source.clone())?;
        let keeper: Keeper = Box::pin(keeper.run_until(stop.clone().cancelled_owned()));
        let config = ReflectorConfig { linger: self.linger, seed: rng.random(), ..ReflectorConfig::default() };
        let reflectors = Reflectors::new(self.source.clone(), config);
        let writer: Arc<dyn ErasedWriter> = Arc::new(Shared(self.source));
        let (events, received) = mpsc::channel(engine::EVENTS);
        let readiness = Readiness::new();
        let mut engine = Engine {
            source: writer,
            target: self.target,
            reflectors,
            queue: Queue::with_hashes(queue::Config { concurrency: CONCURRENCY, ..queue::Config::default() }),
            stations: Vec::new(),
            shares: shares.clone(),
            shard_events,
            draining: BTreeSet::new(),
            runner: engine::runner(events.clone()),
            events: received,
            watched: BTreeMap::new(),
            labels: KeyMap::default(),
            same: self.same,
            landed_now: Vec::new(),
            unheard: Vec::new(),
            unwritten: BTreeSet::new(),
            memories: KeyMap::default(),
            agents: Agents::default(),
            flights: Flights::default(),
            sweep_at: None,
            epoch: None,
            attempts: 0,
            met: 0,
            dry_run: self.dry_run,
            plans: Vec::new(),
            settled: Vec::new(),
            listeners: Vec::new(),
            readiness: readiness.clone(),
            rng,
        };
        let mut names = BTreeSet::new();
        for controller in self.controllers {
            controller.check()?;
            if !names.insert(controller.publisher()) {
                return Err(ControllerError::Twice(controller.publisher()).into());
            }
            engine.add(controller, shares.shards());
        }
        let mut callbacks = Vec::new();
        for (names, callback) in self.callbacks {
            let (told, stages) = watch::channel(Stage::Syncing);
            engine.listeners.push(Listener { controllers: engine.named(&names)?, told });
            callbacks.push(callback.run(stages));
        }
        let controllers = engine.stations.iter().map(|at| at.name.clone()).collect();
        let handle = Handle { events: events.downgrade(), controllers, readiness, shares };
        let server = self.server.map(|server| server(stop.clone()));
        Ok(Manager { engine, handle, keeper, server, callbacks, grace: self.grace, stop })
    }

    /// Builds it and runs it; see [`Manager::run_until`].
    ///
    /// # Errors
    /// As [`ManagerBuilder::build`] and [`Manager::run_until`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), ManagerError> {
        self.build()?.run_until(shutdown).await
    }
}

impl ManagerBuilder<Store> {
    /// Serves the store, and what is published, on this listener: to agents, to users, and to whoever looks into it.
    pub fn serve_bus(self, listener: TcpListener) -> Self {
        let bus = self.source.bus().clone();
        let serve = move |stop: CancellationToken| -> Server {
            let incoming =
                TcpListenerStream::new(listener).map(|io| io.and_then(|io| io.set_nodelay(true).map(|()| io)));
            Box::pin(bus.serve(incoming, stop.cancelled_owned()))
        };
        Self { server: Some(Box::new(serve)), ..self }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("controllers", &self.handle.controllers)
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for ManagerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder")
            .field("controllers", &self.controllers)
            .finish_non_exhaustive()
    }
}
