//! The clock, and what follows from a seed.

use std::{sync::Arc, time::Duration};

use ctkit::{Controller, Failure, functions};
use nimbus_testkit::World;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::kinds::{Policy, Rules, controller, policy};

/// When a reactor that always fails was called, in the first hour of a world.
async fn attempts(seed: u64) -> Vec<Duration> {
    let mut world = World::seeded(seed);
    let (begun, times) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let noted = times.clone();
    world.controller(move || {
        let noted = noted.clone();
        Controller::new(functions::<Policy>().on_apply(move |_, _| {
            noted.lock().push(begun.elapsed());
            async { Err(Failure::new("never")) }
        }))
    });
    world.apply(policy(&[], "80")).await;
    world.advance(Duration::from_secs(3600)).await;
    let times = times.lock();
    times.clone()
}

#[tokio::test]
async fn an_hour_takes_as_long_as_what_happens_in_it_and_a_seed_repeats_it() {
    let first = attempts(7).await;
    assert!(first.len() > 50, "{first:?}");
    assert_eq!(attempts(7).await, first);
    assert_ne!(attempts(8).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stands_still_already_is_left_alone() {
    let mut world = World::default();
    world.controller(controller);
    world.settled().await;
}

#[tokio::test]
async fn an_agent_is_lost_when_the_bus_is_told_to_wait_no_longer() {
    let mut world = World::new().with_bus(|config| config.lost_after = Duration::from_secs(2));
    world.controller(controller);
    let scripted = world.scripted("a-1").label("zone", "a").takes::<Rules>().start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;
    scripted.agent().crash().await;
    world.advance(Duration::from_secs(5)).await;
    assert_eq!(world.propagation(&web).await.excluded, 1);
    assert_eq!(world.propagation(&web).await.agents, 0);
}

#[tokio::test]
#[should_panic(expected = "waited in vain for a miracle")]
async fn what_never_happens_is_not_waited_for_for_ever() {
    World::new().until("a miracle", async || false).await;
}

#[tokio::test]
#[should_panic(expected = "is not applied: Propagation { agents: 1, applied: 0")]
async fn what_is_never_applied_is_not_waited_for_for_ever() {
    let mut world = World::new();
    world.controller(controller);
    world.scripted("a-1").label("zone", "a").takes::<Rules>().start().stalls();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;
}
