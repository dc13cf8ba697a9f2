//! The real agent, with handlers that take their time, fail, and remember everything.

use std::{sync::Arc, time::Duration};

use nimbus_agent::{Agent, Backoff, Context, Failure, Handler, Object, Status};
use nimbus_core::{Kind, Labels};
use parking_lot::Mutex;
use prost_types::Any;
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::sleep;

use crate::{
    hosts::{ADDRESS, keep_jumping},
    machine::Seen,
    model::{Key, WRITE, ZONE},
    net::Line,
    policies::Rule,
    setup::AgentSetup,
    world::{Phase, World, millis},
};

#[derive(Clone)]
struct Hands {
    world: World,
    agent: Arc<str>,
    rng: Arc<Mutex<SmallRng>>,
    /// Handlers take at most this long, in milliseconds.
    slow: u64,
}

const RETRY: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(1) };

/// Runs until it is killed.
pub(crate) async fn run(world: World, setup: AgentSetup, line: Line) -> turmoil::Result {
    let mut rng = world.rng(&setup.name);
    let (zone, directory) = {
        let mut world = world.lock();
        let machine = world.machines.get_mut(&setup.name).ok_or("no machine")?;
        machine.start(setup.cache);
        (machine.zone(), world.setup.directory.clone())
    };
    let slow = crate::setup::pick(&mut rng, &[0, 30, 400]);
    let hands = Hands {
        world: world.clone(),
        agent: setup.name.as_str().into(),
        rng: Arc::new(Mutex::new(world.rng(&setup.name))),
        slow,
    };
    let mut builder = Agent::builder(&setup.name, ADDRESS)
        .label(ZONE, zone)
        .connector(line)
        .reconnect(RETRY)
        .retry(RETRY)
        .concurrency(rng.random_range(1..8))
        .detached_after(Duration::from_millis(500))
        .seed(rng.random());
    for kind in &setup.kinds {
        builder = builder.handle_packed(Kind::new(kind)?, hands.clone());
    }
    builder = builder.handle::<Rule, _>(hands.clone());
    if setup.cache {
        builder = builder.inline_disk().cache(directory.join(format!("{}.redb", setup.name)));
    }
    if setup.trust {
        builder = builder.trust_applied();
    }
    let agent = builder.build()?;
    world.note(&setup.name, format!("starts in zone {zone}"));
    world.lock().handles.insert(setup.name.clone(), agent.handle());
    tokio::spawn(keep_jumping(world.clone(), setup.name.clone()));
    let handle = agent.handle();
    let (others, name) = (world.clone(), setup.name.clone());
    tokio::spawn(async move {
        let mut known = zone;
        loop {
            sleep(Duration::from_millis(20)).await;
            let wanted = others.lock().machines[&name].zone();
            if wanted != known {
                let labels = Labels::new(&[(ZONE.to_owned(), wanted.to_owned())].into()).expect("a label");
                // It fails only if the agent has stopped.
                let _ = handle.set_labels(labels).await;
                known = wanted;
            }
        }
    });
    agent.run_until(std::future::pending()).await?;
    Ok(())
}

fn seen(object: &Object<Any>) -> Seen {
    let meta = &object.meta;
    let number = meta.annotations.get(WRITE).and_then(|number| number.parse().ok()).unwrap_or_default();
    let refs = meta.refs.iter().filter(|reference| !reference.weak);
    Seen {
        key: Key::new(meta.key.kind().as_str(), meta.key.name()),
        number,
        refs: refs
            .map(|reference| Key::new(reference.to.kind().as_str(), reference.to.name()))
            .collect(),
    }
}

// === impl Hands ===

impl Hands {
    /// Takes its time, and fails now and then while things go wrong.
    async fn work(&self) -> Result<(), Failure> {
        let (wait, fails) = {
            let mut rng = self.rng.lock();
            (millis(&mut rng, 0, self.slow), rng.random_bool(0.06))
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
        if fails && self.world.phase() == Phase::Chaos { Err(Failure::new("out of luck")) } else { Ok(()) }
    }

    fn end(&self, what: &str, seen: &Seen, result: &Result<(), Failure>) {
        let mut world = self.world.lock();
        let ended = if result.is_ok() { "done" } else { "failed" };
        world.note(&self.agent, format!("{what} {} as {}: {ended}", seen.key, seen.number));
        let removes = what == "remove";
        if let Some(machine) = world.machines.get_mut(&*self.agent) {
            machine.end(seen, removes, result.is_ok());
        }
    }
}

impl Handler<Any> for Hands {
    async fn apply(&self, cx: &Context, object: Arc<Object<Any>>) -> Result<Status, Failure> {
        let seen = seen(&object);
        {
            let mut world = self.world.lock();
            let what = format!("apply {} as {} ({:?} {})", seen.key, seen.number, cx.reason(), cx.attempt());
            world.note(&self.agent, what);
            let inner = &mut *world;
            let machine = inner.machines.get_mut(&*self.agent).expect("every agent has a machine");
            if let Err((property, what)) =
                machine.begin_apply(&inner.model, &seen, cx.reason(), cx.attempt(), inner.phase)
            {
                inner.violate(&self.agent, property, &what);
            }
        }
        let result = self.work().await;
        self.end("apply", &seen, &result);
        result.map(|()| Status::applied())
    }

    async fn remove(&self, _: &Context, object: Arc<Object<Any>>) -> Result<(), Failure> {
        let seen = seen(&object);
        {
            let mut world = self.world.lock();
            world.note(&self.agent, format!("remove {} as {}", seen.key, seen.number));
            let inner = &mut *world;
            let machine = inner.machines.get_mut(&*self.agent).expect("every agent has a machine");
            if let Err((property, what)) = machine.begin_remove(&inner.model, &seen, inner.phase) {
                inner.violate(&self.agent, property, &what);
            }
        }
        let result = self.work().await;
        self.end("remove", &seen, &result);
        result
    }
}

impl Handler<Rule> for Hands {
    async fn apply(&self, cx: &Context, rule: Arc<Object<Rule>>) -> Result<Status, Failure> {
        let Rule { policy, index, number } = rule.spec.clone();
        {
            let mut world = self.world.lock();
            world.note(
                &self.agent,
                format!("apply rule {policy}-{index} as {number} ({:?} {})", cx.reason(), cx.attempt()),
            );
            let inner = &mut *world;
            let quiet = inner.phase == Phase::Quiet && cx.reason() == nimbus_agent::Reason::Changed;
            let before = inner.machines[&*self.agent].rules.get(rule.meta.key.name()).map(|rule| rule.number);
            if let Err((property, what)) = inner.policies.judge_apply(&policy, index, number, before, quiet) {
                inner.violate(&self.agent, property, &what);
            }
        }
        self.work().await?;
        if let Some(machine) = self.world.lock().machines.get_mut(&*self.agent) {
            machine.calls += 1;
            machine.rules.insert(rule.meta.key.name().to_owned(), rule.spec.clone());
        }
        Ok(Status::applied())
    }

    async fn remove(&self, _: &Context, rule: Arc<Object<Rule>>) -> Result<(), Failure> {
        let Rule { policy, index, number } = rule.spec.clone();
        {
            let mut world = self.world.lock();
            world.note(&self.agent, format!("remove rule {policy}-{index} as {number}"));
            if let Err((property, what)) = world.policies.judge_remove(&policy, index, number) {
                world.violate(&self.agent, property, &what);
            }
        }
        self.work().await?;
        if let Some(machine) = self.world.lock().machines.get_mut(&*self.agent) {
            machine.calls += 1;
            machine.rules.remove(rule.meta.key.name());
        }
        Ok(())
    }
}
