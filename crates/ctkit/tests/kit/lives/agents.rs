//! Deletes that wait for agents, and deletes that go on from one controller to the next (F67, F68).

use std::{sync::Arc, time::Duration};

use ctkit::{Action, Context, Controller, Deletion, Failure, Object, Reactor};

use crate::{
    kinds::{Policy, Rules},
    life::{Life, alone},
    lives::{diary::Diary, machines::Machines},
    net::Daemon,
    world::{delete, find, published, put, quiet, ready, texts},
};

const MARK: &str = "policies-cleanup";

fn waiting(diary: &Diary) -> Controller {
    patient(diary.controller())
}

fn patient(controller: Controller) -> Controller {
    controller.finalizer(MARK).on_deletion(Deletion::AfterAgents)
}

/// An object was gone while machines still had what had been published for it (F67).
#[tokio::test(start_paused = true)]
async fn a_staged_delete_waits_until_agents_have_removed_everything() {
    let (daemon, machines, diary) = (Daemon::start(|_| {}), Machines::default(), Diary::default());
    let store = &daemon.store;
    put(store, "web", &["x", "y"], "one").await;
    put(store, "db", &["z"], "one").await;
    let life = Life::begin(alone(store).controller(waiting(&diary))).await;
    let agents: Vec<_> = (0..3).map(|n| machines.run(&daemon.net, &format!("m{n}"), "a")).collect();
    quiet().await;
    assert_eq!(machines.has("m1"), texts(&[("x", "one"), ("y", "one"), ("z", "one")]));
    machines.hold("m1");
    delete(store, "web").await;
    quiet().await;
    assert_eq!(published(store), texts(&[("z", "one")]), "it is withdrawn");
    assert!(find(store, "web").unwrap().is_deleting(), "and waits");
    assert_eq!(ready(store, "web").0, "Deleting");
    machines.let_go();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(find(store, "web").is_none());
    assert_eq!(machines.has("m1"), texts(&[("z", "one")]));
    life.stop().await;
    for agent in agents {
        agent.stop().await;
    }
}

/// A delete that waited for agents waited no more after the controller had been restarted, because it did not know any
/// more for what (F67).
#[tokio::test(start_paused = true)]
async fn a_staged_delete_goes_on_to_wait_after_a_restart() {
    for (graceful, remembers) in [(true, true), (true, false), (false, true), (false, false)] {
        let (daemon, machines, diary) = (Daemon::start(|_| {}), Machines::default(), Diary::default());
        let store = &daemon.store;
        put(store, "web", &["x"], "one").await;
        let life = Life::begin(alone(store).controller(patient(diary.with(remembers, "")))).await;
        let agent = machines.run(&daemon.net, "m1", "a");
        quiet().await;
        machines.hold("m1");
        delete(store, "web").await;
        quiet().await;
        if graceful {
            life.stop().await;
        } else {
            life.crash().await;
        }
        let life = Life::begin(alone(store).controller(patient(diary.with(remembers, "")))).await;
        quiet().await;
        assert!(find(store, "web").is_some(), "it still waits; graceful: {graceful}");
        machines.let_go();
        quiet().await;
        assert!(find(store, "web").is_none());
        life.stop().await;
        agent.stop().await;
    }
}

/// A delete waited for ever for a machine that had been scrapped (F43).
#[tokio::test(start_paused = true)]
async fn agents_that_are_lost_do_not_hold_up_a_delete_for_ever() {
    let (daemon, machines, diary) = (Daemon::start(|_| {}), Machines::default(), Diary::default());
    let store = &daemon.store;
    put(store, "web", &["x"], "one").await;
    let life = Life::begin(alone(store).controller(waiting(&diary))).await;
    let agent = machines.run(&daemon.net, "m1", "a");
    quiet().await;
    machines.hold("m1");
    delete(store, "web").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(find(store, "web").is_some());
    agent.crash().await;
    daemon.net.cut();
    quiet().await;
    assert!(find(store, "web").is_none());
    life.stop().await;
}

/// The children of a controller are the objects of the next one.
struct Regions;

impl Reactor<Policy> for Regions {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        for zone in &policy.spec.zones {
            let region = Region { zone: zone.clone(), text: policy.spec.text.clone() };
            cx.publish(Object::derived(&policy, zone, region)).await?;
        }
        Ok(Action::done())
    }
}

/// What a policy is in one region.
#[derive(Clone, PartialEq, prost::Message)]
struct Region {
    #[prost(string, tag = "1")]
    zone: String,
    #[prost(string, tag = "2")]
    text: String,
}

impl prost::Name for Region {
    const NAME: &'static str = "Region";
    const PACKAGE: &'static str = "kit.v1";
}

struct Racks;

impl Reactor<Region> for Racks {
    async fn on_apply(&self, cx: &Context, region: Arc<Object<Region>>) -> Result<Action, Failure> {
        for rack in ["1", "2"] {
            let rules = Rules { zone: format!("{}{rack}", region.spec.zone), text: region.spec.text.clone() };
            cx.publish(Object::derived(&region, rack, rules)).await?;
        }
        Ok(Action::done())
    }
}

/// The grandchildren of a deleted object stayed for ever (F68).
#[tokio::test(start_paused = true)]
async fn a_delete_goes_on_over_two_levels_of_controllers() {
    let store = ctkit::Store::in_memory();
    let regions = || Controller::new(Regions).named("regions").publishes::<Region>();
    let racks = || Controller::new(Racks).named("racks").publishes::<Rules>();
    let both = || alone(&store).controller(regions()).controller(racks());
    put(&store, "web", &["a", "b"], "one").await;
    put(&store, "db", &["c"], "one").await;
    let life = Life::begin(both()).await;
    assert_eq!(published(&store).len(), 6);
    put(&store, "web", &["b"], "two").await;
    quiet().await;
    assert_eq!(published(&store), texts(&[("b1", "two"), ("b2", "two"), ("c1", "one"), ("c2", "one")]));
    delete(&store, "web").await;
    quiet().await;
    assert_eq!(published(&store), texts(&[("c1", "one"), ("c2", "one")]));
    // While both are down, and while only the second is.
    put(&store, "web", &["a"], "three").await;
    quiet().await;
    life.stop().await;
    delete(&store, "web").await;
    let life = Life::begin(alone(&store).controller(regions())).await;
    assert_eq!(published(&store).len(), 4);
    life.stop().await;
    let life = Life::begin(both()).await;
    assert_eq!(published(&store), texts(&[("c1", "one"), ("c2", "one")]));
    let before = crate::world::head(&store);
    life.stop().await;
    Life::begin(both()).await.stop().await;
    assert_eq!(crate::world::head(&store), before, "nothing to tell on either level");
}
