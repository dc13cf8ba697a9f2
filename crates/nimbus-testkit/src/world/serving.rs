//! The bus of a world, which may be stopped and started.

use ctkit::Store;
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::Epoch;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio_util::task::AbortOnDropHandle;

use crate::{link::Net, world::World};

/// A bus, and whether it is there.
pub(crate) struct Serving {
    pub(crate) bus: Bus,
    net: Net,
    task: Option<AbortOnDropHandle<()>>,
    rng: SmallRng,
    configure: Box<dyn Fn(&mut Config) + Send + Sync>,
}

// === impl Serving ===

impl Serving {
    pub(crate) fn begin(net: &Net, seed: u64) -> Self {
        let bus = Bus::new(Config::new(Epoch(0), 0), Metrics::default());
        let rng = SmallRng::seed_from_u64(seed);
        let mut serving = Self { bus, net: net.clone(), task: None, rng, configure: Box::new(|_| {}) };
        serving.start();
        serving
    }

    fn start(&mut self) {
        let mut config = Config::new(Epoch(self.rng.random()), self.rng.random());
        (self.configure)(&mut config);
        self.bus = Bus::new(config, Metrics::default());
        let (bus, incoming) = (self.bus.clone(), self.net.listen());
        let served = async move { bus.serve(incoming, std::future::pending()).await };
        let task = tokio::spawn(async move { served.await.unwrap_or_else(|error| panic!("the bus: {error}")) });
        self.task = Some(AbortOnDropHandle::new(task));
    }

    fn stop(&mut self) {
        self.net.close();
        self.task = None;
    }
}

// === impl World ===

impl World {
    /// Configures the bus, and starts another one.
    #[must_use]
    pub fn with_bus(mut self, configure: impl Fn(&mut Config) + Send + Sync + 'static) -> Self {
        self.serving.configure = Box::new(configure);
        self.restart_bus();
        self
    }

    /// Ends the bus without a word: connections break, and whatever it knew is lost.
    pub fn stop_bus(&mut self) {
        self.serving.stop();
    }

    /// Starts another bus, which knows nothing.
    pub fn start_bus(&mut self) {
        self.serving.stop();
        self.serving.start();
    }

    /// Kills the bus and starts another one, which knows nothing.
    pub fn restart_bus(&mut self) {
        self.stop_bus();
        self.start_bus();
    }

    /// The bus, for whoever wants to look deeper into it.
    pub fn bus(&self) -> &Bus {
        &self.serving.bus
    }

    /// The API that users write into.
    pub fn api(&self) -> &Store {
        &self.api
    }
}
