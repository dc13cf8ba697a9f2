//! Controllers together with agents.

use std::{sync::Arc, time::Duration};

use nimbus_agent::{Backoff, Failure, Link};

use crate::kinds::{PolicyStatus, Rules, Switch, pairs, policy, published, world};

/// Longer than the bus waits for an agent that does not come back.
const LOST: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_agent_applies_what_is_for_it_and_the_policy_says_so() {
    let world = world();
    let (a, b) = (Arc::new(Switch::default()), Arc::new(Switch::default()));
    let agent = world.agent("a-1").label("zone", "a").handle(a.clone()).start();
    world.agent("b-1").label("zone", "b").handle(b.clone()).start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;
    world.settled().await;
    assert_eq!((a.ports(), b.ports()), (vec![443], vec![]));
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 1, agents: 1 }));
    let rules = world.published::<Rules>()[0].key().clone();
    assert!(world.propagation(&rules).await.is_complete());
    assert_eq!(agent.id(), "a-1");
    assert!(agent.explain(&rules).await.unwrap().sentence.contains("applied"));

    world.delete(&web).await;
    world.settled().await;
    assert_eq!(a.ports(), []);
}

#[tokio::test]
async fn a_failure_of_an_agent_reaches_the_controller_and_so_does_its_end() {
    let world = world();
    let scripted = world.scripted("a-1").label("zone", "a").takes::<Rules>().start();
    world.scripted("a-2").label("zone", "a").takes::<Rules>().start();
    scripted.fails_everything(Failure::new("no room left").with_code("FULL"));
    let web = world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    let propagation = world.propagation(&web).await;
    assert_eq!((propagation.applied, propagation.failed), (1, 1));
    let failure = &propagation.failures[0];
    assert_eq!((&*failure.agent, &*failure.code, &*failure.message), ("a-1", "FULL", "no room left"));
    assert!(scripted.holds::<Rules>().is_empty());
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 1, agents: 2 }));

    scripted.applies_everything();
    world.until_applied(&web).await;
    world.settled().await;
    assert_eq!(scripted.holds::<Rules>().into_values().next().unwrap().port, 443);
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 2, agents: 2 }));
}

#[tokio::test]
async fn scripted_agents_fail_degrade_and_stall_as_they_are_told() {
    let world = world();
    let scripted = world.scripted("a-1").label("zone", "a").takes::<Rules>().start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;
    let rules = world.published::<Rules>()[0].name().to_owned();

    scripted.fails::<Rules>(&rules, Failure::new("never").permanent());
    world.apply(policy(&["a"], "80")).await;
    world.settled().await;
    assert_eq!(world.propagation(&web).await.failed, 1);
    assert_eq!(scripted.holds::<Rules>()[&rules].port, 443, "the last good version stays");

    scripted.degrades::<Rules>(&rules, "SLOW", "as slow as can be");
    world.apply(policy(&["a"], "81")).await;
    world.settled().await;
    let propagation = world.propagation(&web).await;
    assert_eq!((propagation.applied, propagation.degraded), (1, 1));

    scripted.stalls();
    world.apply(policy(&["a"], "82")).await;
    world.settled().await;
    assert_eq!(world.propagation(&web).await.pending, 1);
    scripted.applies_everything();
    world.until_applied(&web).await;
    assert_eq!(scripted.holds::<Rules>()[&rules].port, 82);
}

#[tokio::test]
async fn a_bus_that_is_restarted_takes_nothing_from_agents_and_tells_them_nothing() {
    let mut world = world();
    let switch = Arc::new(Switch::default());
    world.agent("a-1").label("zone", "a").handle(switch.clone()).start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;
    world.restart_bus();
    world.until_applied(&web).await;
    world.settled().await;
    assert_eq!((switch.ports(), switch.calls()), (vec![443], 1));
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 1, agents: 1 }));

    world.stop_bus();
    world.advance(Duration::from_secs(3600)).await;
    assert_eq!(switch.ports(), [443], "what was applied stays, without a bus as well");
    world.apply(policy(&["a"], "80")).await;
    world.start_bus();
    world.settled().await;
    assert_eq!(switch.ports(), [80]);
}

/// An agent that came when everything had been applied everywhere was in nobody's status.
#[tokio::test]
async fn an_agent_that_comes_late_is_in_the_status_of_every_policy() {
    let mut world = world();
    world.scripted("a-1").label("zone", "a").takes::<Rules>().start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.settled().await;
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 1, agents: 1 }));
    let late = world.scripted("a-2").label("zone", "a").takes::<Rules>().start();
    late.stalls();
    world.settled().await;
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 1, agents: 2 }));
    late.applies_everything();
    world.settled().await;
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 2, agents: 2 }));

    world.restart_bus();
    world.until_applied(&web).await;
    world.settled().await;
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 2, agents: 2 }));
}

#[tokio::test]
async fn an_agent_that_is_cut_off_gets_lost_and_comes_back() {
    let world = world();
    let switch = Arc::new(Switch::default());
    let agent = world.agent("a-1").label("zone", "a").handle(switch.clone()).start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;

    agent.link().cut();
    assert!(!agent.link().is_up());
    world.apply(policy(&["a"], "80")).await;
    world.settled().await;
    assert_eq!(world.propagation(&web).await.pending, 1, "it may come back in a moment");
    world.advance(LOST).await;
    let propagation = world.propagation(&web).await;
    assert_eq!((propagation.agents, propagation.excluded), (0, 1));
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 0, agents: 0 }));

    agent.link().heal();
    world.until_applied(&web).await;
    assert_eq!(switch.ports(), [80]);
    world.settled().await;
    assert_eq!(world.status::<PolicyStatus>(&web), Some(PolicyStatus { applied: 1, agents: 1 }));
}

#[tokio::test]
async fn a_connection_that_is_half_open_is_found_out() {
    let world = world();
    let switch = Arc::new(Switch::default());
    let agent = world.agent("a-1").label("zone", "a").handle(switch.clone()).start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;
    agent.link().freeze();
    world.apply(policy(&["a"], "80")).await;
    world.settled().await;
    assert_eq!(agent.status().unwrap().link, Link::InSync, "nothing has told it otherwise");
    agent.link().heal();
    world.until_applied(&web).await;
    assert_eq!(switch.ports(), [80]);
}

#[tokio::test]
async fn agents_stop_crash_and_start_and_their_machines_stay() {
    let world = world();
    let switch = Arc::new(Switch::default());
    let backoff = Backoff { base: Duration::from_millis(1), max: Duration::from_millis(1) };
    let setup = world.agent("a-1").label("zone", "a").handle(switch.clone());
    let agent = setup.configure(move |builder| builder.reconnect(backoff)).start();
    let web = world.apply(policy(&["a"], "443")).await;
    world.until_applied(&web).await;

    agent.crash().await;
    assert!(agent.status().is_none() && agent.handle().is_none());
    assert!(agent.explain(&web).await.is_none());
    assert_eq!(switch.ports(), [443]);
    world.apply(policy(&["a"], "80")).await;
    agent.start();
    agent.start();
    world.settled().await;
    assert_eq!(switch.ports(), [80]);

    agent.stop().await;
    agent.stop().await;
    world.apply(policy(&["a"], "81")).await;
    world.settled().await;
    assert_eq!((switch.ports(), published(&world)), (vec![80], pairs([("a", 81)])));
    agent.start();
    world.until_applied(&web).await;
    assert_eq!(switch.ports(), [81]);
}

#[tokio::test]
#[should_panic(expected = "an agent without handlers has nothing to do")]
async fn an_agent_that_cannot_be_built_is_refused() {
    world().agent("a-1").start();
}
