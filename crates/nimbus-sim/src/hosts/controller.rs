//! A real controller: of two instances, one leads.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{
    Action, Backoff, Context, Controller, Entry, Failure, Handle, InstanceId, Instances, Manager, Object, Reactor,
    Remote, Waiting,
};
use parking_lot::Mutex;
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::sleep;

use crate::{
    hosts::{ADDRESS, API_ADDRESS, keep_jumping},
    net::Line,
    policies::{Call, Policy, Rule},
    setup::pick,
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
    let seed: u64 = rng.random();
    let instance = format!("{name}.{seed:x}");
    let (leader, id) = (Instances::leader("policies").ttl(Duration::from_secs(3)), InstanceId::new(&instance));
    // Some processes have hardly any luck, and begin with failures.
    let fails = pick(&mut rng, &[0.05, 0.05, 0.5]);
    let reactor = Rules { world: world.clone(), name, instance, rng: Mutex::new(rng), fails, seen: Arc::default() };
    let manager = Manager::between(source, target)
        .controller(Controller::new(reactor).named("policies").publishes::<Rule>().backoff(BACKOFF))
        .instances(leader.instance(id).seed(seed))
        .seed(seed)
        .build()?;
    world.note(name, "starts");
    tokio::spawn(keep_asking(world.clone(), name, manager.handle()));
    manager.run_until(std::future::pending()).await?;
    Ok(())
}

/// Says again and again when it had nothing left to do, and whether it led.
async fn keep_asking(world: World, name: &'static str, handle: Handle) {
    let is_planned = |entry: &Entry| {
        let is_at_work = matches!(entry.state, Waiting::Ready | Waiting::Running);
        is_at_work || entry.next_in.is_some()
    };
    loop {
        // It fails only if the controller has stopped.
        if handle.settled().await.is_err() {
            return;
        }
        let at = world.lock().elapsed();
        let Ok(entries) = handle.entries().await else { return };
        if !entries.iter().any(is_planned) {
            let leads = !handle.instances().shards.is_empty();
            world.lock().rested.insert(name, (at, leads));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Makes rules of policies.
struct Rules {
    world: World,
    name: &'static str,
    /// This process, as the leases name it.
    instance: String,
    rng: Mutex<SmallRng>,
    /// How probable it is that a reaction fails while things go wrong.
    fails: f64,
    seen: Arc<Mutex<Seen>>,
}

/// Of each policy the last write that was reacted to, and whether a reaction to it runs.
type Seen = BTreeMap<String, (u64, bool)>;

// === impl Rules ===

impl Rules {
    async fn make(&self, cx: &Context, old: Option<u64>, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let Policy { rules, number } = policy.spec;
        let key = policy.name();
        let call = Call { policy: key.to_owned(), old, new: Some(number) };
        let _running = Running::begin(self, cx, &call, number);
        self.work().await?;
        for index in 0..rules {
            let rule = Rule { policy: key.to_owned(), index, number };
            cx.publish(Object::derived(&policy, &index.to_string(), rule)).await?;
        }
        self.world.lock().policies.called(call);
        Ok(Action::done())
    }

    /// Takes its time, and fails now and then while things go wrong.
    async fn work(&self) -> Result<(), Failure> {
        let (wait, fails) = {
            let mut rng = self.rng.lock();
            (millis(&mut rng, 0, 60), rng.random_bool(self.fails))
        };
        sleep(wait).await;
        if fails && self.world.phase() == Phase::Chaos { Err(Failure::new("out of luck")) } else { Ok(()) }
    }
}

impl Reactor<Policy> for Rules {
    async fn on_create(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        self.make(cx, None, policy).await
    }

    async fn on_update(
        &self,
        cx: &Context,
        old: Arc<Object<Policy>>,
        new: Arc<Object<Policy>>,
    ) -> Result<Action, Failure> {
        self.make(cx, Some(old.spec.number), new).await
    }

    async fn on_delete(&self, cx: &Context, last: Arc<Object<Policy>>) -> Result<Action, Failure> {
        let number = last.spec.number;
        let call = Call { policy: last.name().to_owned(), old: Some(number), new: None };
        let _running = Running::begin(self, cx, &call, number);
        self.work().await?;
        self.world.lock().policies.called(call);
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
    /// Reactions to one policy never overlap, and never go back; and only who may act begins one.
    fn begin(rules: &Rules, cx: &Context, call: &Call, number: u64) -> Self {
        let Rules { world, name, instance, seen, .. } = rules;
        let Call { policy, old, new } = call;
        let told = |number: &Option<u64>| number.map_or_else(|| "nothing".to_owned(), |number| number.to_string());
        let (from, to, causes) = (told(old), told(new), cx.causes());
        world.note(
            name,
            format!("reacts to {policy}: from {from} to {to} because of {causes:?}, attempt {}", cx.attempt()),
        );
        let leader = world.lock().leader.clone();
        if let Some(leader) = leader.filter(|leader| leader != instance) {
            world.violate(name, "Fenced", &format!("{instance} reacts to {policy} although {leader} has the lease"));
        }
        let before = seen.lock().insert(policy.clone(), (number, true));
        match before {
            Some((_, true)) => world.violate(name, "Serial", &format!("two reactions to {policy} at a time")),
            Some((before, _)) if before > number && new.is_some() => {
                world.violate(name, "Ordered", &format!("{policy} goes back from {before} to {number}"));
            }
            _ => {}
        }
        Self { seen: seen.clone(), policy: policy.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((_, running)) = self.seen.lock().get_mut(&self.policy) {
            *running = false;
        }
    }
}
