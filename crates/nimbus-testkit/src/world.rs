//! Controllers, a bus and agents in one test.

mod controllers;
mod looking;
mod marks;
mod serving;

use std::{fmt, future::Future, time::Duration};

use ctkit::{Draft, Source as _, Spec, Store};
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::{Epoch, ObjectKey, PublisherId};
use nimbus_store::{Op, Step, Txn};
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::time::Instant;

pub use self::looking::{Ready, key};
use self::{controllers::Running, serving::Serving};
use crate::{
    agent::{Agent, AgentSetup},
    clock,
    faulty::Faults,
    link::{Link, Net},
    scripted::ScriptedSetup,
};

/// Controllers, a bus and agents in one test, and everything that can happen to them.
///
/// Users write into an API that outlives everything. Controllers watch it and publish on a bus, which forgets everything
/// when it is restarted; agents are connected to it. All of these are the real ones. Only the network is of memory, and
/// the clock stands still until nothing is left to do, and then jumps to whatever comes next: an hour takes as long as
/// what happens in it.
///
/// Everything random follows from one seed, which is printed if the test fails.
pub struct World {
    seed: u64,
    rng: Mutex<SmallRng>,
    api: Store,
    source: Faults,
    target: Faults,
    net: Net,
    /// From controllers to the bus.
    link: Link,
    serving: Serving,
    controllers: Vec<Running>,
    agents: Mutex<Vec<Agent>>,
}

/// Whoever writes into the API.
const USER: &str = "user";

/// Nothing that happens by itself takes as long; what is planned for later than this is not waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Reports of agents linger for a tenth of a second, controllers sum up for a second who has come, and statuses follow
/// both: if nothing happens for this long, it is because of a backoff or somebody who sleeps.
const QUIET: Duration = Duration::from_millis(1_500);

/// Often enough to stop soon after the last thing has happened.
const STEP: Duration = Duration::from_millis(20);

// === impl World ===

impl World {
    /// An empty world; everything random follows from a seed of its own, which is printed if the test fails.
    ///
    /// # Panics
    /// Outside of a runtime of one thread, such as that of `#[tokio::test]`.
    pub fn new() -> Self {
        Self::seeded(rand::random())
    }

    /// The same with a seed that a failed test has printed.
    ///
    /// # Panics
    /// As [`World::new`].
    pub fn seeded(seed: u64) -> Self {
        clock::pause();
        let mut rng = SmallRng::seed_from_u64(seed);
        let config = Config::new(Epoch(rng.random()), rng.random());
        let net = Net::default();
        let link = net.link();
        let serving = Serving::begin(&net, rng.random());
        Self {
            seed,
            rng: Mutex::new(rng),
            api: Store::from_bus(Bus::new(config, Metrics::default())),
            source: Faults::default(),
            target: Faults::default(),
            net,
            link,
            serving,
            controllers: Vec::new(),
            agents: Mutex::default(),
        }
    }

    /// Creates or changes an object, as a user would; returns its key.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn apply<K: Spec>(&self, draft: Draft<K>) -> ObjectKey {
        let draft = nimbus_store::Draft::try_from(draft).unwrap_or_else(|error| panic!("{error}"));
        let key = draft.key.clone();
        self.write(Op::Upsert(draft)).await;
        key
    }

    /// Deletes an object, as a user would.
    ///
    /// # Panics
    /// If that is refused.
    pub async fn delete(&self, key: &ObjectKey) {
        self.write(Op::Delete(key.clone())).await;
    }

    async fn write(&self, op: Op) {
        let publisher = PublisherId::new(USER).expect("a name");
        let txn = Txn { publisher, fence: 0, leases: Vec::new(), steps: vec![Step::from(op)] };
        self.api.commit(txn).await.unwrap_or_else(|error| panic!("the API refused it: {error}"));
    }

    /// An agent of that name, with handlers that are to be tested.
    pub fn agent(&self, id: &str) -> AgentSetup<'_> {
        AgentSetup::new(self, id)
    }

    /// An agent of that name that answers as it is told.
    pub fn scripted(&self, id: &str) -> ScriptedSetup<'_> {
        ScriptedSetup::new(self, id)
    }

    /// What goes wrong between controllers and the API.
    pub fn source(&self) -> &Faults {
        &self.source
    }

    /// What goes wrong between controllers and the bus, beyond what happens to the [link](World::link).
    pub fn target(&self) -> &Faults {
        &self.target
    }

    /// The way of controllers to the bus, which may be cut.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Lets time pass. Everything that is due meanwhile happens, in order.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until nothing happens any more: every reaction has ended, all is published, agents that can reach the bus have
    /// everything, and have said how it went.
    ///
    /// What is planned for later, such as another attempt after a failure, is not waited for; let time
    /// [advance](World::advance) for that. Time passes here, too, about half a second of it.
    ///
    /// # Panics
    /// If something goes on for ten minutes: a reaction or a handler that does not end, or a change that leads to another.
    pub async fn settled(&self) {
        let begun = Instant::now();
        let quiet = QUIET + (self.source.delay() + self.target.delay()) * 2;
        let (mut before, mut since) = (self.marks().await, begun);
        loop {
            self.advance(STEP).await;
            let after = self.marks().await;
            let now = Instant::now();
            if after != before || after.busy.is_some() {
                let busy = after.busy.as_deref().unwrap_or("something changes again and again");
                assert!(now - begun < PATIENCE, "the world does not settle: {busy}");
                (before, since) = (after, now);
            } else if now - since >= quiet {
                return;
            }
        }
    }

    /// Waits until something holds that nothing announces.
    ///
    /// # Panics
    /// If it does not within ten minutes.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, mut holds: impl FnMut() -> F) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
            self.advance(STEP).await;
        }
    }

    /// Waits until every agent that counts has applied what was published under this key, or for the object of this key,
    /// and at least one has.
    ///
    /// # Panics
    /// If that takes longer than ten minutes; the message says how far it has come.
    pub async fn until_applied(&self, key: &ObjectKey) {
        let begun = Instant::now();
        loop {
            let propagation = self.propagation(key).await;
            if propagation.applied > 0 && propagation.is_complete() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{key} is not applied: {propagation:?}");
            self.advance(STEP).await;
        }
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    pub(crate) fn adopt(&self, agent: &Agent) {
        self.agents.lock().push(agent.clone());
    }

    /// Randomness for a part of the world.
    pub(crate) fn fork(&self) -> u64 {
        self.rng.lock().random()
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[allow(clippy::print_stderr, reason = "where tests say why they failed")]
            {
                eprintln!("to see it again: World::seeded({})", self.seed);
            }
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed).finish_non_exhaustive()
    }
}
