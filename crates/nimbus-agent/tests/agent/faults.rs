//! Handlers that fail, panic, hang and die half-way.

use std::time::Duration;

use nimbus_agent::{Backoff, Failure, Link};
use nimbus_wire::v1::{self, Verdict};

use crate::{
    recorder::{Fate, Recorder},
    world::{World, alpha, alpha_key, beta, beta_key, put},
};

/// Scenario 6 (H25, H27): agent and reason are named within one round trip, and everything else goes on.
#[tokio::test(start_paused = true)]
async fn an_apply_that_fails_is_named_with_its_reason_and_everything_else_goes_on() {
    let world = World::start();
    world.sync(vec![alpha("bad", "1"), alpha("good", "1")]).await;
    let (wrong, right) = (Recorder::default(), Recorder::default());
    wrong.decide("bad", Some(Fate::Fail(Failure::new("port 80 is taken").with_code("EADDRINUSE").permanent())));
    let mut sick = world.run(world.builder("sick", &wrong));
    let mut well = world.run(world.builder("well", &right).seed(2));
    well.settled().await;
    sick.until(|status| status.link == Link::InSync && status.failed == 1 && status.unfinished == 1)
        .await;
    assert_eq!(wrong.world().keys().collect::<Vec<_>>(), ["Alpha/good"]);

    let mut fleet = world.fleet().await;
    let target = Some(v1::Target { target: Some(v1::target::Target::Object(alpha_key("bad").to_wire())) });
    let request = v1::WaitForRequest { target, min_agents: 2, timeout_ms: 60_000, ..Default::default() };
    let mut progress = fleet.wait_for(request.clone()).await.unwrap().into_inner();
    let mut last = None;
    while let Some(message) = progress.message().await.unwrap() {
        last = Some(message);
    }
    let last = last.unwrap();
    assert_eq!(last.outcome(), v1::wait_for_response::Outcome::Failed, "{last:?}");
    let propagation = last.propagation.unwrap();
    assert_eq!((propagation.agents, propagation.applied, propagation.failed), (2, 1, 1));
    assert_eq!(propagation.failed_for_good, 1);
    let failure = &propagation.failures[0];
    assert_eq!(failure.agent, "sick");
    let exception = failure.exception.as_ref().unwrap();
    assert_eq!((exception.code.as_str(), exception.message.as_str()), ("EADDRINUSE", "port 80 is taken"));
    assert_eq!((exception.generation, exception.retryable), (1, false));

    let explain = v1::ExplainRequest { agent: "sick".into(), object: Some(alpha_key("bad").to_wire()) };
    let why = fleet.explain(explain).await.unwrap().into_inner();
    assert_eq!(why.verdict(), Verdict::Failed);
    assert!(why.explanation.contains("port 80 is taken"), "{}", why.explanation);

    // A new generation is a new chance.
    wrong.decide("bad", None);
    world.put(alpha("bad", "2")).await;
    sick.settled().await;
    let mut progress = fleet.wait_for(request).await.unwrap().into_inner();
    let mut last = None;
    while let Some(message) = progress.message().await.unwrap() {
        last = Some(message);
    }
    assert_eq!(last.unwrap().outcome(), v1::wait_for_response::Outcome::Done);
    sick.stop().await;
    well.stop().await;
}

/// Invariant 8: it is tried again until it succeeds, and a new generation begins to count anew (F37, F38).
#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_until_it_succeeds() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("x", Some(Fate::Fail(Failure::new("not yet"))));
    let mut agent = world.run(world.builder("a", &recorder));
    recorder.until(|calls| calls.len() == 8).await;
    recorder.decide("x", None);
    agent.settled().await;
    let calls = recorder.take_calls();
    assert_eq!(calls[0], "apply Alpha/x=1 Changed");
    assert!(calls[1..calls.len() - 1].iter().all(|call| call == "apply Alpha/x=1 Retry"), "{calls:?}");
    assert_eq!(calls.last().unwrap(), "applied Alpha/x=1");
    agent.stop().await;
}

/// B06: what is permanent waits for the next generation, and is not tried again before.
#[tokio::test(start_paused = true)]
async fn a_permanent_failure_waits_for_the_next_generation() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("x", Some(Fate::Fail(Failure::new("never").permanent())));
    let mut agent = world.run(world.builder("a", &recorder));
    agent.until(|status| status.failed == 1).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(recorder.take_calls().len(), 1);
    world.net.cut();
    agent.until(|status| status.link == Link::Detached).await;
    agent.until(|status| status.link == Link::InSync).await;
    assert_eq!(recorder.take_calls().len(), 0, "a reconnect is no new generation");
    recorder.decide("x", None);
    world.put(alpha("x", "2")).await;
    agent.settled().await;
    agent.stop().await;
}

/// Scenario 14 (F58, H15).
#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_quarantines_that_object_and_nobody_else() {
    let world = World::start();
    world.sync(vec![alpha("cursed", "1"), alpha("fine", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("cursed", Some(Fate::Panic));
    let quarantine = Backoff { base: Duration::from_secs(60), max: Duration::from_secs(60) };
    let mut agent = world.run(world.builder("a", &recorder).quarantine(quarantine));
    agent
        .until(|status| status.failed == 1 && status.unfinished == 1 && status.running == 0)
        .await;
    for n in 0..20 {
        world.put(alpha("fine", &n.to_string())).await;
    }
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/fine=19")).await;
    let mut fleet = world.fleet().await;
    let explain = v1::ExplainRequest { agent: "a".into(), object: Some(alpha_key("cursed").to_wire()) };
    let why = fleet.explain(explain).await.unwrap().into_inner();
    assert!(why.explanation.contains("cursed is cursed") || why.exception.unwrap().message.contains("cursed"));
    recorder.decide("cursed", None);
    world.put(alpha("cursed", "2")).await;
    agent.settled().await;
    agent.stop().await;
}

/// F24: a handler that hangs can be seen, and holds up nothing but its object.
#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_seen_and_holds_up_nothing_but_its_object() {
    let world = World::start();
    world.sync(vec![alpha("slow", "1"), alpha("fast", "1")]).await;
    let recorder = Recorder::default();
    let gate = recorder.gate("slow");
    let mut agent = world.run(world.builder("a", &recorder));
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/fast=1")).await;
    agent.until(|status| status.link == Link::InSync).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let mut fleet = world.fleet().await;
    let explain = v1::ExplainRequest { agent: "a".into(), object: Some(alpha_key("slow").to_wire()) };
    let why = fleet.explain(explain).await.unwrap().into_inner();
    assert_eq!(why.verdict(), Verdict::Pending, "{why:?}");
    let exception = why.exception.unwrap();
    assert_eq!(exception.code, "RUNNING");
    assert!(exception.age_ms >= 10_000, "{exception:?}");
    let explain = v1::ExplainRequest { agent: "a".into(), object: Some(alpha_key("fast").to_wire()) };
    assert_eq!(fleet.explain(explain).await.unwrap().into_inner().verdict(), Verdict::Applied);
    gate.add_permits(1);
    agent.settled().await;
    agent.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_its_deadline_is_dropped_and_tried_again() {
    let world = World::start();
    world.sync(vec![alpha("slow", "1")]).await;
    let recorder = Recorder::default();
    let gate = recorder.gate("slow");
    let mut agent = world.run(world.builder("a", &recorder).deadline(Duration::from_secs(5)));
    recorder.until(|calls| calls.len() == 3).await;
    gate.add_permits(1);
    agent.settled().await;
    agent.stop().await;
}

/// The agent dies in the middle of an apply, and the object is deleted before it is back: what was begun is taken back.
#[tokio::test]
async fn an_apply_that_was_cut_short_by_death_is_taken_back_if_the_object_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let world = World::start();
    world.sync(vec![]).await;
    let recorder = Recorder::default();
    let _gate = recorder.gate("half");
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.settled().await;
    world.put(alpha("half", "1")).await;
    recorder.until(|calls| calls == &["apply Alpha/half=1 Changed"]).await;
    agent.crash().await;
    world.delete(alpha_key("half")).await;
    let recorder = Recorder::default();
    recorder.meddle("Alpha/half", "torn");
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.settled().await;
    assert_eq!(recorder.calls(), ["remove Alpha/half", "removed Alpha/half"]);
    assert!(recorder.world().is_empty());
    agent.stop().await;
}

/// The same, but the object is still wanted: it is applied again.
#[tokio::test]
async fn an_apply_that_was_cut_short_by_death_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let world = World::start();
    world.sync(vec![alpha("done", "1")]).await;
    let recorder = Recorder::default();
    let _gate = recorder.gate("half");
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.settled().await;
    world.put(alpha("half", "1")).await;
    recorder
        .until(|calls| calls.iter().any(|call| call == "apply Alpha/half=1 Changed"))
        .await;
    agent.crash().await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).cache(&cache).trust_applied());
    agent.settled().await;
    assert!(recorder.calls().iter().any(|call| call == "applied Alpha/half=1"), "{:?}", recorder.calls());
    assert!(!recorder.calls().iter().any(|call| call.contains("Alpha/done")), "{:?}", recorder.calls());
    agent.stop().await;
}

/// Only what the bus gave is ever removed (F31).
#[tokio::test(start_paused = true)]
async fn what_the_bus_did_not_give_is_left_alone() {
    let world = World::start();
    world.sync(vec![alpha("x", "1"), beta("y", "1")]).await;
    let recorder = Recorder::default();
    recorder.meddle("Alpha/foreign", "theirs");
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.sync(vec![]).await;
    recorder
        .until(|calls| calls.iter().filter(|call| call.starts_with("removed")).count() == 2)
        .await;
    agent.settled().await;
    assert_eq!(recorder.world().keys().collect::<Vec<_>>(), ["Alpha/foreign"]);
    agent.stop().await;
}

/// A removal that fails is reported, and tried again.
#[tokio::test(start_paused = true)]
async fn a_removal_that_fails_is_tried_again_and_reported() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("x", Some(Fate::Stick));
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    world.delete(alpha_key("x")).await;
    agent.until(|status| status.failed == 1).await;
    let mut fleet = world.fleet().await;
    let target = Some(v1::Target { target: Some(v1::target::Target::Object(alpha_key("x").to_wire())) });
    let request = v1::WaitForRequest { target, max_failed: 1, timeout_ms: 1_000, ..Default::default() };
    let mut progress = fleet.wait_for(request).await.unwrap().into_inner();
    let mut last = None;
    while let Some(message) = progress.message().await.unwrap() {
        last = Some(message);
    }
    let failures = last.unwrap().propagation.unwrap().failures;
    assert_eq!(failures[0].exception.as_ref().unwrap().message, "it will not go");
    recorder.decide("x", None);
    agent.settled().await;
    assert!(recorder.world().is_empty());
    agent.stop().await;
}

/// Serial per object: changes that come while a call runs are one call after it, with the newest version (F36, F74).
#[tokio::test(start_paused = true)]
async fn changes_during_a_call_are_one_call_with_the_newest_version() {
    let world = World::start();
    world.sync(vec![alpha("x", "0")]).await;
    let recorder = Recorder::default();
    let gate = recorder.gate("x");
    let mut agent = world.run(world.builder("a", &recorder));
    recorder.until(|calls| calls.len() == 1).await;
    for n in 1..=50 {
        world.apply(vec![put(alpha("x", &n.to_string()))]).await;
    }
    let head = world.bus.store().state().head();
    agent.until(|status| status.position.is_some_and(|at| at.revision == head)).await;
    gate.add_permits(2);
    agent.settled().await;
    let calls = recorder.take_calls();
    assert_eq!(
        calls,
        ["apply Alpha/x=0 Changed", "applied Alpha/x=0", "apply Alpha/x=50 Changed", "applied Alpha/x=50"]
    );
    agent.stop().await;
}

/// Degraded is applied, and worth a look.
#[tokio::test(start_paused = true)]
async fn what_is_degraded_counts_as_applied_and_is_shown() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("x", Some(Fate::Degrade));
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    let mut fleet = world.fleet().await;
    let target = Some(v1::Target { target: Some(v1::target::Target::Object(alpha_key("x").to_wire())) });
    let request = v1::WaitForRequest { target, timeout_ms: 60_000, ..Default::default() };
    let mut progress = fleet.wait_for(request).await.unwrap().into_inner();
    let mut last = None;
    while let Some(message) = progress.message().await.unwrap() {
        last = Some(message);
    }
    let propagation = last.unwrap().propagation.unwrap();
    assert_eq!((propagation.agents, propagation.applied, propagation.degraded), (1, 1, 1));
    assert_eq!(propagation.degradations[0].exception.as_ref().unwrap().message, "as slow as can be");
    let explain = v1::ExplainRequest { agent: "a".into(), object: Some(alpha_key("x").to_wire()) };
    assert_eq!(fleet.explain(explain).await.unwrap().into_inner().verdict(), Verdict::Degraded);
    recorder.decide("x", None);
    world.put(alpha("x", "2")).await;
    agent.settled().await;
    let explain = v1::ExplainRequest { agent: "a".into(), object: Some(alpha_key("x").to_wire()) };
    let applied = async || {
        while fleet.explain(explain.clone()).await.unwrap().into_inner().verdict() != Verdict::Applied {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), { applied }()).await.unwrap();
    agent.stop().await;
}

/// A spec that is not what its kind says is reported, and goes without a trace when it is deleted.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_reported_and_goes_when_it_is_deleted() {
    let world = World::start();
    let mut garbage = alpha("garbage", "1");
    garbage.0.spec.as_mut().unwrap().value = vec![0xff; 9];
    world.sync(vec![garbage, alpha("fine", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent
        .until(|status| status.link == Link::InSync && status.failed == 1 && status.unfinished == 1)
        .await;
    let why = agent.handle.explain(alpha_key("garbage")).await.unwrap().unwrap();
    assert!(why.sentence.contains("UNREADABLE"), "{why:?}");
    world.delete(alpha_key("garbage")).await;
    agent.until(|status| status.objects == 1 && status.unfinished == 0).await;
    assert_eq!(recorder.calls(), ["apply Alpha/fine=1 Changed", "applied Alpha/fine=1"]);
    agent.stop().await;
}

/// An object that the bus was told of as waiting is not done because it no longer waits: its handler is at work.
#[tokio::test(start_paused = true)]
async fn what_was_reported_as_waiting_stays_reported_until_it_is_done() {
    let world = World::start();
    world.sync(vec![beta("zone", "1"), alpha("policy", "1").needs(&beta_key("zone"))]).await;
    let recorder = Recorder::default();
    let (zone, policy) = (recorder.gate("zone"), recorder.gate("policy"));
    let mut agent = world.run(world.builder("a", &recorder));
    recorder.until(|calls| calls.len() == 1).await;
    let target = Some(v1::Target { target: Some(v1::target::Target::Object(alpha_key("policy").to_wire())) });
    let request = v1::GetPropagationRequest { target, ..Default::default() };
    let mut fleet = world.fleet().await;
    let mut counts = async || {
        let found = fleet.get_propagation(request.clone()).await.unwrap().into_inner().propagation.unwrap();
        (found.agents, found.applied, found.pending_agents.first().is_some_and(|agent| agent.exception.is_some()))
    };
    // The first wait makes it an exception.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(counts().await, (1, 0, true));
    zone.add_permits(1);
    recorder
        .until(|calls| calls.iter().any(|call| call.starts_with("apply Alpha/policy")))
        .await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        assert_eq!(counts().await, (1, 0, true), "its handler is at work");
    }
    policy.add_permits(1);
    agent.settled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(counts().await, (1, 1, false));
    agent.stop().await;
}

/// The agent dies in the middle of a removal, and then the very same object is wanted again: it is applied again.
#[tokio::test]
async fn a_removal_that_was_cut_short_by_death_is_not_taken_for_undone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.redb");
    let world = World::start();
    let mut object = alpha("x", "1");
    object.0.uid = "the-same".to_owned();
    world.sync(vec![object.clone()]).await;
    let recorder = Recorder::default();
    let builder = || world.builder("a", &recorder).cache(&cache).trust_applied();
    let mut agent = world.run(builder());
    agent.settled().await;
    let gate = recorder.gate("x");
    world.delete(alpha_key("x")).await;
    recorder.until(|calls| calls.iter().any(|call| call == "remove Alpha/x")).await;
    agent.crash().await;
    world.put(object).await;
    recorder.bury();
    recorder.take_calls();
    gate.add_permits(10);
    let mut agent = world.run(builder());
    recorder.until(|calls| calls.iter().any(|call| call == "applied Alpha/x=1")).await;
    agent.settled().await;
    agent.stop().await;
}

/// What was begun is removed, also if what came after it could not be read.
#[tokio::test(start_paused = true)]
async fn what_was_begun_is_removed_although_a_later_version_cannot_be_read() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("x", Some(Fate::Fail(Failure::new("half-way").permanent())));
    let mut agent = world.run(world.builder("a", &recorder));
    agent.until(|status| status.failed == 1).await;
    recorder.decide("x", None);
    let mut garbage = alpha("x", "1");
    garbage.0.spec.as_mut().unwrap().value = vec![0xff; 9];
    world.put(garbage).await;
    agent
        .until(|status| status.position.is_some_and(|at| at.revision.0 == 2) && status.failed == 1)
        .await;
    world.delete(alpha_key("x")).await;
    agent.until(|status| status.objects == 0 && status.unfinished == 0).await;
    assert!(recorder.calls().iter().any(|call| call == "removed Alpha/x"), "{:?}", recorder.calls());
    agent.stop().await;
}

/// No time is too long for a clock to count.
#[tokio::test(start_paused = true)]
async fn times_without_end_are_no_reason_to_panic() {
    let world = World::start();
    world.sync(vec![alpha("x", "1"), alpha("y", "1")]).await;
    let recorder = Recorder::default();
    recorder.decide("x", Some(Fate::Fail(Failure::new("later").retry_after(Duration::MAX))));
    let for_ever = Backoff { base: Duration::MAX, max: Duration::MAX };
    let builder = world.builder("a", &recorder).detached_after(Duration::MAX).grace(Duration::MAX);
    let builder = builder
        .deadline(Duration::MAX)
        .observe_every(Duration::MAX)
        .retry(for_ever)
        .quarantine(for_ever);
    let mut agent = world.run(builder);
    agent.until(|status| status.failed == 1 && status.unfinished == 1).await;
    recorder.decide("x", None);
    world.put(alpha("x", "2")).await;
    agent.settled().await;
    agent.stop().await;
}
