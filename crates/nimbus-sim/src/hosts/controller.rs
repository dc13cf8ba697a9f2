//! A real controller: of two instances, one leads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{Action, Backoff, Context, Controller, Failure, Instances, Manager, Object, Reactor, Remote};
use parking_lot::Mutex;
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::sleep;

use crate::{
    hosts::{ADDRESS, API_ADDRESS, keep_jumping},
    net::Line,
    policies::{Policy, Rule},
    world::{Phase, World, millis},
};

const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1) };

/// Runs until it is killed.
pub(crate) async fn run(world: World, name: &'static str, line: Line) -> turmoil::Result {
    let mut rng = world.rng(name);
    tokio::spawn(keep_jumping(world.clone(), name.to_owned()));
    let mut remote = |address: &str| {
        Remote::builder(address)
            .connector(line.clone())
            .reconnect(BACKOFF)
            .seed(rng.random())
            .build()
    };
    let (source, target) = (remote(API_ADDRESS)?, remote(ADDRESS)?);
    let mut rng = world.rng(name);
    let seed = rng.random();
    let reactor = Rules { world: world.clone(), name, rng: Mutex::new(rng), seen: Arc::default() };
    let manager = Manager::between(source, target)
        .controller(Controller::new(reactor).named("policies").publishes::<Rule>().backoff(BACKOFF))
        .instances(Instances::leader("policies").ttl(Duration::from_secs(3)).seed(seed))
        .seed(seed)
        .build()?;
    world.note(name, "starts");
    manager.run_until(std::future::pending()).await?;
    Ok(())
}

/// Makes rules of policies.
struct Rules {
    world: World,
    name: &'static str,
    rng: Mutex<SmallRng>,
    seen: Arc<Mutex<Seen>>,
}

/// Of each policy the last write that was reacted to, and whether a reaction to it runs.
type Seen = BTreeMap<String, (u64, bool)>;

// === impl Rules ===

impl Reactor<Policy> for Rules {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let Policy { rules, number } = policy.spec;
        let key = policy.meta.key.name().to_owned();
        let _running = Running::begin(self, &key, number);
        let (wait, fails) = {
            let mut rng = self.rng.lock();
            (millis(&mut rng, 0, 60), rng.random_bool(0.05))
        };
        sleep(wait).await;
        if fails && self.world.phase() == Phase::Chaos {
            return Err(Failure::new("out of luck"));
        }
        for index in 0..rules {
            let rule = Rule { policy: key.clone(), index, number };
            cx.publish(Object::derived(&policy, &index.to_string(), rule)).await?;
        }
        Ok(Action::done())
    }
}

/// A reaction under way.
struct Running {
    seen: Arc<Mutex<Seen>>,
    policy: String,
}

// === impl Running ===

impl Running {
    /// Reactions to one policy never overlap, and never go back.
    fn begin(rules: &Rules, policy: &str, number: u64) -> Self {
        let Rules { world, name, seen, .. } = rules;
        world.note(name, format!("reacts to {policy} as {number}"));
        let before = seen.lock().insert(policy.to_owned(), (number, true));
        match before {
            Some((_, true)) => world.violate(name, "Serial", &format!("two reactions to {policy} at a time")),
            Some((before, _)) if before > number => {
                world.violate(name, "Ordered", &format!("{policy} goes back from {before} to {number}"));
            }
            _ => {}
        }
        Self { seen: seen.clone(), policy: policy.to_owned() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((_, running)) = self.seen.lock().get_mut(&self.policy) {
            *running = false;
        }
    }
}
