//! Without a bus, and with a memory that cannot be used.

use std::time::Duration;

use nimbus_agent::Link;

use crate::{
    recorder::Recorder,
    world::{World, alpha, beta, beta_key},
};

/// F39: a machine that starts while no bus can be reached applies its last good state, in order.
#[tokio::test]
async fn without_a_bus_the_last_good_state_is_applied_and_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let mut world = World::start();
    world.sync(vec![alpha("policy", "1").needs(&beta_key("zone")), beta("zone", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache));
    agent.settled().await;
    agent.stop().await;
    world.kill();

    let recorder = Recorder::default();
    let detached_after = Duration::from_millis(50);
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).detached_after(detached_after));
    agent.until(|status| status.link == Link::Detached && status.unfinished == 0).await;
    let expected =
        ["apply Beta/zone=1 Started", "applied Beta/zone=1", "apply Alpha/policy=1 Started", "applied Alpha/policy=1"];
    assert_eq!(recorder.calls(), expected);

    // And when there is one again, nothing is sent twice.
    world.begin();
    world.sync(vec![alpha("policy", "1").needs(&beta_key("zone")), beta("zone", "1")]).await;
    agent.settled().await;
    assert_eq!(recorder.calls(), expected);
    assert_eq!(world.metric("nimbus_bus_answers_total{mode=\"MODE_SNAPSHOT\"}"), 0);
    agent.stop().await;
}

/// An object that went while the agent was down is removed when it is back, also if the bus has forgotten everything.
#[tokio::test]
async fn what_went_while_the_agent_and_the_bus_were_down_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let mut world = World::start();
    world.sync(vec![alpha("x", "1"), alpha("y", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.settled().await;
    agent.stop().await;
    world.kill();
    world.begin();
    recorder.take_calls();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.until(|status| status.link == Link::Waiting).await;
    assert_eq!(recorder.calls(), Vec::<String>::new(), "nothing goes while the bus is empty");
    world.sync(vec![alpha("y", "1")]).await;
    agent.settled().await;
    assert_eq!(recorder.calls(), ["remove Alpha/x", "removed Alpha/x"]);
    agent.stop().await;
}

#[tokio::test]
async fn a_memory_that_cannot_be_used_is_moved_aside_and_the_agent_starts_without() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    std::fs::write(&cache, "this is no database").unwrap();
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache));
    agent.settled().await;
    assert_eq!(recorder.world().len(), 1);
    let mut fleet = world.fleet().await;
    let request = nimbus_wire::v1::ListAgentsRequest { details: true, ..Default::default() };
    let agents = fleet.list_agents(request).await.unwrap().into_inner().agents;
    assert!(agents[0].events.iter().any(|event| event.reason == "CacheMovedAside"), "{agents:?}");
    agent.stop().await;
    let kept: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(
        kept.iter()
            .any(|path| path != &cache && std::fs::read(path).unwrap() == b"this is no database"),
        "{kept:?}"
    );
}

#[tokio::test]
async fn two_agents_cannot_share_a_memory_and_the_second_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let world = World::start();
    world.sync(vec![]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache));
    agent.settled().await;
    let other = world.builder("a", &recorder).cache(&cache);
    let error = other.run_until(std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("cache.redb"), "{error}");
    agent.stop().await;
}
