//! Coming back: after a cut, after a restart of the agent, after a restart of the bus.

use std::time::Duration;

use nimbus_agent::{Link, Metrics};
use nimbus_core::Labels;
use prometheus_client::registry::Registry;

use crate::{
    recorder::Recorder,
    world::{Draft, World, alpha, alpha_key, beta, delete, put},
};

fn hundred() -> Vec<Draft> {
    (0..100).map(|n| alpha(&format!("o{n:03}"), "1")).collect()
}

/// A metric of an agent.
fn value(registry: &Registry, name: &str) -> u64 {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(ToOwned::to_owned));
    value.map_or(0, |value| value.parse().unwrap())
}

/// Scenario 4.
#[tokio::test(start_paused = true)]
async fn a_second_away_with_three_changes_is_three_events_and_no_relist() {
    let world = World::start();
    world.sync(hundred()).await;
    let (recorder, mut registry) = (Recorder::default(), Registry::default());
    let mut agent = world.run(world.builder("a", &recorder).metrics(Metrics::new(&mut registry)));
    agent.settled().await;
    assert_eq!(recorder.world().len(), 100);
    recorder.take_calls();
    let before = value(&registry, "nimbus_agent_changes_total");

    world.net.cut();
    agent.until(|status| status.link == Link::Detached).await;
    world.put(alpha("o001", "2")).await;
    world.put(alpha("new", "1")).await;
    world.delete(alpha_key("o002")).await;
    recorder
        .until(|calls| calls.iter().filter(|call| call.contains("ed ")).count() == 3)
        .await;
    agent.settled().await;

    assert_eq!(value(&registry, "nimbus_agent_changes_total") - before, 3);
    assert_eq!(world.metric("nimbus_bus_answers_total{mode=\"MODE_DELTA\"}"), 1);
    let mut calls = recorder.take_calls();
    calls.sort_unstable();
    let expected = [
        "applied Alpha/new=1",
        "applied Alpha/o001=2",
        "apply Alpha/new=1 Changed",
        "apply Alpha/o001=2 Changed",
        "remove Alpha/o002",
        "removed Alpha/o002",
    ];
    assert_eq!(calls, expected);
    agent.stop().await;
}

/// Scenario 4, on a new epoch: only the objects of differing buckets travel, and the handler sees what differs.
#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_bus_with_one_change_the_handler_sees_one_call() {
    let mut world = World::start();
    world.sync(hundred()).await;
    let (recorder, mut registry) = (Recorder::default(), Registry::default());
    let mut agent = world.run(world.builder("a", &recorder).metrics(Metrics::new(&mut registry)));
    agent.settled().await;
    recorder.take_calls();
    let before = value(&registry, "nimbus_agent_changes_total");

    world.kill();
    agent.until(|status| status.link == Link::Detached).await;
    world.begin();
    agent.until(|status| status.link == Link::Waiting).await;
    let mut changed = hundred();
    changed[7] = alpha("o007", "2");
    // As a publisher that counts generations would say it.
    changed[7].0.generation = 2;
    world.sync(changed).await;
    agent.settled().await;

    assert_eq!(world.metric("nimbus_bus_answers_total{mode=\"MODE_DIGEST\"}"), 1);
    assert_eq!(value(&registry, "nimbus_agent_changes_total") - before, 1);
    assert_eq!(recorder.take_calls(), ["apply Alpha/o007=2 Changed", "applied Alpha/o007=2"]);
    agent.stop().await;
}

/// Scenario 15 (B01, B11): a thousand agents, and nothing changed.
#[tokio::test(start_paused = true)]
async fn a_restarted_bus_makes_no_agent_of_a_thousand_remove_or_apply_anything() {
    let mut world = World::start();
    let objects: Vec<_> = (0..20).map(|n| alpha(&format!("o{n:03}"), "1")).collect();
    world.sync(objects.clone()).await;
    let recorder = Recorder::default();
    let mut agents = Vec::new();
    for n in 0_u64..1_000 {
        agents.push(world.run(world.builder(&format!("agent-{n:04}"), &recorder).seed(n)));
    }
    for agent in &mut agents {
        agent.settled().await;
    }
    recorder.take_calls();

    world.kill();
    world.begin();
    for agent in &mut agents {
        agent.until(|status| status.link == Link::Waiting).await;
    }
    // The controller has come half-way.
    for object in &objects[..10] {
        world.put(object.clone()).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(recorder.calls(), Vec::<String>::new(), "while the bus is being refilled");
    world.sync(objects).await;
    for agent in &mut agents {
        agent.settled().await;
    }
    assert_eq!(recorder.calls(), Vec::<String>::new());
    assert_eq!(world.metric("nimbus_bus_answers_total{mode=\"MODE_UNCHANGED\"}"), 1_000);
    assert_eq!(world.metric("nimbus_bus_answers_total{mode=\"MODE_SNAPSHOT\"}"), 0);
}

#[tokio::test]
async fn a_restarted_agent_is_sent_the_difference_only() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let world = World::start();
    world.sync(hundred()).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.settled().await;
    agent.stop().await;
    recorder.take_calls();

    world
        .apply(vec![put(alpha("o001", "2")), put(beta("b", "1")), delete(&alpha_key("o002"))])
        .await;
    let mut registry = Registry::default();
    let builder = world
        .builder("a", &recorder)
        .cache(&cache)
        .trust_applied()
        .metrics(Metrics::new(&mut registry));
    let mut agent = world.run(builder);
    agent.settled().await;
    assert_eq!(value(&registry, "nimbus_agent_changes_total"), 3);
    let mut calls = recorder.take_calls();
    calls.retain(|call| call.contains("ed "));
    calls.sort_unstable();
    assert_eq!(calls, ["applied Alpha/o001=2", "applied Beta/b=1", "removed Alpha/o002"]);
    agent.stop().await;
}

/// Without trust, everything is applied again: the agent cannot know whether its work outlived it.
#[tokio::test]
async fn a_restarted_agent_applies_everything_again_unless_its_work_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let world = World::start();
    world.sync(vec![alpha("a", "1"), alpha("b", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache));
    agent.settled().await;
    agent.stop().await;
    recorder.take_calls();
    let mut registry = Registry::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).metrics(Metrics::new(&mut registry)));
    agent.settled().await;
    assert_eq!(value(&registry, "nimbus_agent_changes_total"), 0, "nothing travels");
    let mut calls = recorder.take_calls();
    calls.retain(|call| call.contains("apply "));
    calls.sort_unstable();
    assert_eq!(calls, ["apply Alpha/a=1 Started", "apply Alpha/b=1 Started"]);
    agent.stop().await;
}

/// Scenario 8 (H30, F17).
#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_audience_is_removed_and_applied_again_when_it_comes_back() {
    let world = World::start();
    world.sync(vec![alpha("x", "1").only("zone=a"), alpha("y", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).label("zone", "a"));
    agent.settled().await;
    assert_eq!(recorder.world().len(), 2);
    world.put(alpha("x", "1").only("zone=b")).await;
    recorder.until(|calls| calls.iter().any(|call| call == "removed Alpha/x")).await;
    recorder.take_calls();
    world.put(alpha("x", "2").only("zone=a")).await;
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=2")).await;
    agent.stop().await;
}

/// Scenario 8: the labels change while events flow, on the same connection.
#[tokio::test(start_paused = true)]
async fn changed_labels_switch_the_scope_without_a_reconnect_while_events_flow() {
    let world = World::start();
    world
        .sync(vec![alpha("a", "1").only("zone=a"), alpha("b", "1").only("zone=b"), alpha("all", "1")])
        .await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("agent", &recorder).label("zone", "a"));
    agent.settled().await;
    let connects = world.net.connects();
    let mut zones = ["b", "a"].iter().cycle();
    for round in 0..10 {
        let zone = zones.next().unwrap();
        let labels = Labels::new(&[("zone".to_owned(), (*zone).to_owned())].into()).unwrap();
        agent.handle.set_labels(labels).await.unwrap();
        world.put(alpha("all", &format!("{round}"))).await;
        world.put(alpha(zone, &format!("{round}")).only(&format!("zone={zone}"))).await;
        let other = if *zone == "a" { "b" } else { "a" };
        recorder
            .until(|calls| {
                let tail = |wanted: &str| calls.iter().rposition(|call| call == wanted);
                tail(&format!("applied Alpha/{zone}={round}")).is_some()
                    && tail(&format!("removed Alpha/{other}")).is_some()
            })
            .await;
        agent.settled().await;
        let held = recorder.world();
        assert_eq!(held.get(&format!("Alpha/{zone}")), Some(&round.to_string()));
        assert!(!held.contains_key(&format!("Alpha/{other}")), "{held:?}");
        recorder.take_calls();
    }
    // The publisher of this test makes connections of its own: two for each round.
    assert_eq!(world.net.connects() - connects, 20);
    assert_eq!(agent.handle.status().mismatches, 0);
    agent.stop().await;
}

/// Scenario 13 (H36), second session; H26: revisions that cross from nine to ten.
#[tokio::test(start_paused = true)]
async fn a_second_session_of_an_agent_fences_the_first_which_says_so_and_backs_off() {
    let world = World::start();
    world.sync(vec![alpha("x", "0")]).await;
    let (first, second) = (Recorder::default(), Recorder::default());
    let mut older = world.run(world.builder("a", &first));
    older.settled().await;
    let mut newer = world.run(world.builder("a", &second).seed(8));
    newer.settled().await;
    older.until(|status| status.link == Link::Detached).await;
    for n in 1..=15 {
        world.put(alpha("x", &n.to_string())).await;
    }
    second.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=15")).await;
    assert_eq!(first.world()["Alpha/x"], "0", "the older one has stopped");
    newer.stop().await;
    // With the newer one gone, the older one comes back in its time.
    first.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=15")).await;
    older.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_drains_says_when_to_come_back_and_the_agent_does() {
    let mut world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.drain();
    agent.until(|status| status.link == Link::Detached).await;
    world.begin();
    world.sync(vec![alpha("x", "2")]).await;
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=2")).await;
    agent.stop().await;
}

/// A half-open connection carries nothing and reports nothing: missing bookmarks give it away (F24).
#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_noticed_by_missing_bookmarks() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.net.freeze();
    world.put(alpha("x", "2")).await;
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=2")).await;
    agent.settled().await;
    agent.stop().await;
}
