//! What the bus knows of its agents: propagation, explanations, statuses.

use std::time::Duration;

use nimbus_agent::Failure;
use nimbus_wire::v1::{self, AgentState, Verdict, wait_for_response::Outcome};

use crate::{
    recorder::{Alpha, Fate, Recorder},
    world::{World, alpha, alpha_key, beta_key},
};

fn object(name: &str) -> Option<v1::Target> {
    Some(v1::Target { target: Some(v1::target::Target::Object(alpha_key(name).to_wire())) })
}

async fn explain(world: &World, agent: &str, name: &str) -> v1::ExplainResponse {
    let object = Some(alpha_key(name).to_wire());
    let request = v1::ExplainRequest { agent: agent.into(), object };
    world.fleet().await.explain(request).await.unwrap().into_inner()
}

async fn wait(world: &World, request: v1::WaitForRequest) -> v1::WaitForResponse {
    let mut progress = world.fleet().await.wait_for(request).await.unwrap().into_inner();
    let mut last = None;
    while let Some(message) = progress.message().await.unwrap() {
        last = Some(message);
    }
    last.unwrap()
}

/// F42, F43, B05: a hundred agents, of which one is lost, one fails and one is slow.
#[tokio::test(start_paused = true)]
async fn propagation_counts_who_has_it_who_failed_who_is_slow_and_who_is_lost() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    let (failing, slow) = (Recorder::default(), Recorder::default());
    let mut agents = Vec::new();
    for n in 0_u64..100 {
        let recorder = match n {
            0 => &failing,
            1 => &slow,
            _ => &recorder,
        };
        agents.push(world.run(world.builder(&format!("agent-{n:02}"), recorder).seed(n)));
    }
    for agent in &mut agents {
        agent.settled().await;
    }
    agents.pop().unwrap().crash().await;
    failing.decide("x", Some(Fate::Fail(Failure::new("out of space"))));
    let gate = slow.gate("x");
    tokio::time::sleep(Duration::from_secs(40)).await;
    world.put(alpha("x", "2")).await;
    let request = v1::WaitForRequest { target: object("x"), percent: 98.0, timeout_ms: 10_000, ..Default::default() };
    let stuck = wait(&world, request.clone()).await;
    assert_eq!(stuck.outcome(), Outcome::TimedOut, "{stuck:?}");
    let propagation = stuck.propagation.unwrap();
    assert_eq!((propagation.agents, propagation.applied, propagation.failed, propagation.pending), (99, 97, 1, 1));
    assert_eq!(propagation.generation, 2);
    assert_eq!(propagation.pending_agents[0].agent, "agent-01");
    assert!(propagation.pending_agents[0].received);
    let excluded = &propagation.excluded[0];
    assert_eq!((excluded.reason(), excluded.count), (v1::exclusion::Reason::Lost, 1));
    assert_eq!(excluded.agents, ["agent-99"]);
    let enough = wait(&world, v1::WaitForRequest { max_failed: 1, percent: 97.0, ..request.clone() }).await;
    assert_eq!(enough.outcome(), Outcome::Done);
    gate.add_permits(10);
    failing.decide("x", None);
    let all = wait(&world, v1::WaitForRequest { percent: 100.0, timeout_ms: 600_000, ..request }).await;
    assert_eq!(all.outcome(), Outcome::Done, "{all:?}");
    let latency = all.propagation.unwrap().applied_latency.unwrap();
    assert_eq!(latency.count, 99);
    assert!(latency.p50_ms <= latency.p99_ms && latency.p99_ms <= latency.max_ms);
}

/// H32: a bus that was restarted knows what every agent has, with no false "pending".
#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_bus_propagation_is_known_again() {
    let mut world = World::start();
    let objects = vec![alpha("x", "1"), alpha("bad", "1")];
    world.sync(objects.clone()).await;
    let recorder = Recorder::default();
    recorder.decide("bad", Some(Fate::Fail(Failure::new("no").permanent())));
    let mut agents = Vec::new();
    for n in 0..10 {
        agents.push(world.run(world.builder(&format!("agent-{n}"), &recorder).seed(n)));
    }
    for agent in &mut agents {
        agent.until(|status| status.failed == 1).await;
    }
    world.kill();
    world.begin();
    world.sync(objects).await;
    let request = v1::WaitForRequest { target: object("x"), min_agents: 10, timeout_ms: 60_000, ..Default::default() };
    assert_eq!(wait(&world, request.clone()).await.outcome(), Outcome::Done);
    let bad = wait(&world, v1::WaitForRequest { target: object("bad"), max_failed: 9, ..request }).await;
    assert_eq!(bad.outcome(), Outcome::Failed);
    assert_eq!(bad.propagation.unwrap().failed, 10, "the failures are known too");
    assert_eq!(
        recorder.calls().iter().filter(|call| call.starts_with("apply Alpha/bad")).count(),
        10,
        "tried once each"
    );
}

/// B12: every answer that an operator could need.
#[tokio::test(start_paused = true)]
async fn explain_says_why_an_agent_has_or_has_not_an_object() {
    let world = World::start();
    world
        .sync(vec![
            alpha("fine", "1"),
            alpha("elsewhere", "1").only("zone=b"),
            alpha("held", "1").needs(&beta_key("missing")),
            alpha("behind", "1").needs(&alpha_key("held")),
        ])
        .await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder).label("zone", "a"));
    agent
        .until(|status| status.objects == 3 && status.unfinished == 2 && status.running == 0)
        .await;
    // What has just arrived is no exception; a moment later it is.
    tokio::time::sleep(Duration::from_secs(5)).await;

    assert_eq!(explain(&world, "a", "fine").await.verdict(), Verdict::Applied);
    let elsewhere = explain(&world, "a", "elsewhere").await;
    assert_eq!(elsewhere.verdict(), Verdict::NotInAudience);
    assert!(elsewhere.rule.contains("zone=b"), "{elsewhere:?}");
    let held = explain(&world, "a", "held").await;
    assert_eq!(held.verdict(), Verdict::Held, "{held:?}");
    assert_eq!(held.chain[0].object, Some(beta_key("missing").to_wire()));
    assert!(held.exception.unwrap().age_ms >= 1_000);
    let behind = explain(&world, "a", "behind").await;
    let chain: Vec<_> = behind.chain.iter().map(|hop| hop.object.clone().unwrap().name).collect();
    assert_eq!(chain, ["held", "missing"]);
    assert_eq!(explain(&world, "a", "nothing").await.verdict(), Verdict::NoSuchObject);
    assert_eq!(explain(&world, "nobody", "fine").await.verdict(), Verdict::UnknownAgent);
    agent.stop().await;
}

/// F40, F48: rich statuses reach whoever watches, with the generation that they speak of.
#[tokio::test(start_paused = true)]
async fn a_controller_that_watches_gets_statuses_failures_and_lost_agents() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    let mut agent = world.run(world.builder("a", &recorder));
    agent.settled().await;
    let mut watch = world
        .fleet()
        .await
        .watch_status(v1::WatchStatusRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut until = async |wanted: &dyn Fn(&v1::AgentReport) -> bool| loop {
        let message = watch.message().await.unwrap().unwrap();
        if let Some(v1::watch_status_response::Event::Report(report)) = message.event
            && wanted(&report)
        {
            return report;
        }
    };
    let detail = |report: &v1::AgentReport, generation: u64| {
        let status = report.statuses.iter().find(|status| status.generation == generation)?;
        let any = status.status.clone().unwrap();
        Some(<Alpha as prost::Message>::decode(&*any.value).unwrap().value)
    };
    let first = until(&|report| detail(report, 1).is_some()).await;
    assert_eq!(detail(&first, 1).unwrap(), "made 1");
    world.put(alpha("x", "2")).await;
    let second = until(&|report| detail(report, 2).is_some()).await;
    assert_eq!(detail(&second, 2).unwrap(), "made 2");
    recorder.decide("x", Some(Fate::Fail(Failure::new("no"))));
    world.put(alpha("x", "3")).await;
    let failed = until(&|report| report.agent.as_ref().unwrap().failed == 1).await;
    assert_eq!(failed.agent.unwrap().exceptions[0].generation, 3);
    agent.crash().await;
    until(&|report| report.agent.as_ref().unwrap().state() == AgentState::Away).await;
    until(&|report| report.agent.as_ref().unwrap().state() == AgentState::Lost).await;
}

/// An agent that goes for good is not waited for.
#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_is_forgotten() {
    let world = World::start();
    world.sync(vec![alpha("x", "1")]).await;
    let recorder = Recorder::default();
    let mut stays = world.run(world.builder("stays", &recorder));
    let mut leaves = world.run(world.builder("leaves", &recorder).seed(2));
    stays.settled().await;
    leaves.settled().await;
    leaves.handle.leave().await.unwrap();
    leaves.stop().await;
    world.put(alpha("x", "2")).await;
    let request =
        v1::WaitForRequest { target: object("x"), timeout_ms: 60_000, count_lost: true, ..Default::default() };
    let done = wait(&world, request).await;
    assert_eq!(done.outcome(), Outcome::Done);
    assert_eq!(done.propagation.unwrap().agents, 1);
    stays.stop().await;
}
