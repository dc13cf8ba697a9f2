//! References, at the agent: scenario 7 on a real bus.

use nimbus_agent::Failure;

use crate::{
    recorder::{Fate, Recorder},
    world::{World, alpha, alpha_key, beta, beta_key, delete, put},
};

/// Where a call stands; it must have happened.
fn at(calls: &[String], wanted: &str) -> usize {
    calls
        .iter()
        .position(|call| call == wanted)
        .unwrap_or_else(|| panic!("no {wanted:?} in {calls:?}"))
}

#[tokio::test(start_paused = true)]
async fn a_referrer_waits_for_its_referent_however_late_it_comes() {
    let world = World::start();
    world.sync(vec![]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.put(alpha("policy", "1").needs(&beta_key("zone"))).await;
    agent.until(|status| status.unfinished == 1).await;
    let why = agent.handle.explain(alpha_key("policy")).await.unwrap().unwrap();
    assert_eq!(why.chain, [beta_key("zone")], "{why:?}");
    assert!(why.sentence.contains("t.v1.Beta/zone"), "{why:?}");
    assert_eq!(recorder.calls(), Vec::<String>::new());
    world.put(beta("zone", "1")).await;
    agent.settled().await;
    let calls = recorder.take_calls();
    assert!(at(&calls, "applied Beta/zone=1") < at(&calls, "apply Alpha/policy=1 Changed"), "{calls:?}");
    let why = agent.handle.explain(alpha_key("policy")).await.unwrap().unwrap();
    assert_eq!(why.sentence, "is applied");
    assert_eq!(agent.handle.explain(alpha_key("nothing")).await.unwrap(), None);
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_referent_is_removed_after_its_referrers_although_its_delete_came_first() {
    let world = World::start();
    world.sync(vec![beta("zone", "1"), alpha("policy", "1").needs(&beta_key("zone"))]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    recorder.take_calls();
    world.delete(beta_key("zone")).await;
    agent.until(|status| status.unfinished == 1).await;
    let why = agent.handle.explain(beta_key("zone")).await.unwrap().unwrap();
    assert!(why.sentence.contains("t.v1.Alpha/policy"), "{why:?}");
    assert_eq!(recorder.calls(), Vec::<String>::new());
    world.delete(alpha_key("policy")).await;
    agent.settled().await;
    let calls = recorder.take_calls();
    assert!(at(&calls, "removed Alpha/policy") < at(&calls, "remove Beta/zone"), "{calls:?}");
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_an_update_drops_lets_the_referent_go() {
    let world = World::start();
    world.sync(vec![beta("zone", "1"), alpha("policy", "1").needs(&beta_key("zone"))]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.delete(beta_key("zone")).await;
    agent.until(|status| status.unfinished == 1).await;
    recorder.take_calls();
    world.put(alpha("policy", "2")).await;
    agent.settled().await;
    let calls = recorder.take_calls();
    assert!(at(&calls, "applied Alpha/policy=2") < at(&calls, "remove Beta/zone"), "{calls:?}");
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_before_it_could_be_applied_is_never_heard_of() {
    let world = World::start();
    world.sync(vec![]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.put(alpha("policy", "1").needs(&beta_key("zone"))).await;
    agent.until(|status| status.unfinished == 1).await;
    world.delete(alpha_key("policy")).await;
    agent.settled().await;
    assert_eq!(recorder.calls(), Vec::<String>::new());
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_three_referrers_the_first_stays_blocked_and_the_others_go_on() {
    let world = World::start();
    world.sync(vec![beta("zone", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    let transaction = vec![
        put(alpha("one", "1").needs(&beta_key("zone")).needs(&beta_key("missing"))),
        put(alpha("two", "1").needs(&beta_key("zone"))),
        put(alpha("three", "1").needs(&beta_key("zone"))),
    ];
    world.apply(transaction).await;
    agent
        .until(|status| status.objects == 4 && status.unfinished == 1 && status.running == 0)
        .await;
    assert_eq!(
        recorder.world().keys().map(String::as_str).collect::<Vec<_>>(),
        ["Alpha/three", "Alpha/two", "Beta/zone"]
    );
    agent.stop().await;
}

/// H27: a failed object holds back those that need it, and nobody else.
#[tokio::test(start_paused = true)]
async fn a_failed_referent_holds_back_its_dependants_only_and_then_lets_them_go() {
    let world = World::start();
    world.sync(vec![]).await;
    let recorder = Recorder::default();
    recorder.decide("bad", Some(Fate::Fail(Failure::new("no such device").permanent())));
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    let transaction = vec![
        put(beta("bad", "1")),
        put(alpha("needs-bad", "1").needs(&beta_key("bad"))),
        put(alpha("needs-that", "1").needs(&alpha_key("needs-bad"))),
        put(alpha("free", "1")),
        put(beta("good", "1")),
    ];
    world.apply(transaction).await;
    agent
        .until(|status| status.failed == 1 && status.unfinished == 3 && status.running == 0)
        .await;
    assert_eq!(recorder.world().keys().map(String::as_str).collect::<Vec<_>>(), ["Alpha/free", "Beta/good"]);
    let why = agent.handle.explain(alpha_key("needs-that")).await.unwrap().unwrap();
    assert_eq!(why.chain, [alpha_key("needs-bad"), beta_key("bad")], "{why:?}");
    recorder.decide("bad", None);
    world.put(beta("bad", "2")).await;
    agent.settled().await;
    assert_eq!(recorder.world().len(), 5);
    agent.stop().await;
}

/// In one transaction, and also as a snapshot for an agent that comes late.
#[tokio::test(start_paused = true)]
async fn a_chain_is_applied_from_its_end_and_removed_from_its_beginning() {
    let world = World::start();
    let chain: Vec<_> = (0..30_usize)
        .map(|n| {
            let object = alpha(&format!("n{n:02}"), "1");
            if n == 0 { object } else { object.needs(&alpha_key(&format!("n{:02}", n - 1))) }
        })
        .collect();
    world.sync(vec![]).await;
    let live = Recorder::default();
    let mut early = world.run(world.builder("early", &live));
    early.settled().await;
    world.apply(chain.into_iter().rev().map(put).collect()).await;
    let snapshot = Recorder::default();
    let mut late = world.run(world.builder("late", &snapshot));
    for (agent, recorder) in [(&mut early, &live), (&mut late, &snapshot)] {
        recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/n29=1")).await;
        agent.settled().await;
        let calls: Vec<_> = recorder.take_calls().into_iter().filter(|call| call.starts_with("applied")).collect();
        assert!(calls.is_sorted(), "{calls:?}");
    }
    world.apply((0..30).map(|n| delete(&alpha_key(&format!("n{n:02}")))).collect()).await;
    for (agent, recorder) in [(early, &live), (late, &snapshot)] {
        recorder.until(|calls| calls.iter().any(|call| call == "removed Alpha/n00")).await;
        let calls: Vec<_> = recorder.take_calls().into_iter().filter(|call| call.starts_with("removed")).collect();
        assert!(calls.iter().rev().is_sorted(), "{calls:?}");
        agent.stop().await;
    }
}
