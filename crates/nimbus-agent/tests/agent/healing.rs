//! Drift: found, healed, and never a reason to oscillate (H05).

use std::time::Duration;

use nimbus_agent::Failure;
use nimbus_wire::v1;

use crate::{
    recorder::{Fate, Recorder},
    world::{World, alpha},
};

#[tokio::test(start_paused = true)]
async fn what_has_drifted_is_applied_again_and_reported() {
    let world = World::start();
    world.sync(vec![alpha("x", "1"), alpha("y", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).observe_every(Duration::from_secs(10)));
    agent.settled().await;
    recorder.take_calls();
    recorder.meddle("Alpha/x", "meddled");
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=1")).await;
    assert_eq!(recorder.take_calls(), ["apply Alpha/x=1 Drift", "applied Alpha/x=1"]);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(recorder.take_calls(), Vec::<String>::new(), "healed once, and that was it");
    let mut fleet = world.fleet().await;
    let request = v1::ListAgentsRequest { details: true, ..Default::default() };
    let agents = fleet.list_agents(request).await.unwrap().into_inner().agents;
    let drift = agents[0].events.iter().find(|event| event.reason == "Drift").expect("it is reported");
    assert_eq!(drift.count, 1);
    assert!(drift.message.contains("meddled"), "{drift:?}");
    agent.stop().await;
}

/// Scenario 9: an observer that runs every millisecond while applies go on sees no drift, and heals nothing.
#[tokio::test(start_paused = true)]
async fn an_observer_that_runs_all_the_time_finds_no_drift_in_work_that_is_under_way() {
    let world = World::start();
    world.sync(vec![alpha("x", "0")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).observe_every(Duration::from_millis(1)));
    agent.settled().await;
    for n in 1..=100 {
        world.put(alpha("x", &n.to_string())).await;
        tokio::time::sleep(Duration::from_millis(n % 7)).await;
    }
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=100")).await;
    agent.settled().await;
    let calls = recorder.take_calls();
    assert!(!calls.iter().any(|call| call.ends_with("Drift")), "{calls:?}");
    let values: Vec<u32> = calls
        .iter()
        .filter_map(|call| call.strip_prefix("applied Alpha/x=")?.parse().ok())
        .collect();
    assert!(values.is_sorted(), "nothing older after something newer: {values:?}");
    agent.stop().await;
}

/// While a newer version fails, what drifts from the last good one is healed to the last good one.
#[tokio::test(start_paused = true)]
async fn the_last_good_version_is_kept_in_place_while_a_newer_one_fails() {
    let world = World::start();
    world.sync(vec![alpha("x", "good")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).observe_every(Duration::from_secs(10)));
    agent.settled().await;
    recorder.decide("x", Some(Fate::Fail(Failure::new("never").permanent())));
    world.put(alpha("x", "bad")).await;
    agent.until(|status| status.failed == 1).await;
    recorder.decide("x", None);
    recorder.take_calls();
    recorder.meddle("Alpha/x", "meddled");
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=good")).await;
    assert_eq!(recorder.world()["Alpha/x"], "good");
    assert_eq!(agent.handle.status().failed, 1, "the newer version has still failed");
    agent.stop().await;
}
