//! `WaitFor` until it is decided.

use std::time::Duration;

use nimbus_wire::v1::{self, wait_for_response::Outcome};
use tokio::time::Instant;
use tonic::{Code, Streaming};
use tonic_types::StatusExt as _;

use super::{Agent, config, delete, fleet, next, put, start, target};
use crate::scripted::Local;

fn wait_for(name: &str) -> v1::WaitForRequest {
    v1::WaitForRequest { target: target(name), ..Default::default() }
}

async fn wait(local: &Local, request: v1::WaitForRequest) -> Streaming<v1::WaitForResponse> {
    fleet(local).await.wait_for(request).await.unwrap().into_inner()
}

/// The outcome, and who has applied it, of how many.
fn brief(message: &v1::WaitForResponse) -> (Outcome, u32, u32) {
    let propagation = message.propagation.as_ref().unwrap();
    (message.outcome(), propagation.applied, propagation.agents)
}

async fn assert_ended(mut stream: Streaming<v1::WaitForResponse>) {
    assert_eq!(stream.message().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn it_is_done_when_every_agent_has_applied_it() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    let mut b = Agent::connect(&local, "b", "z0").await;
    let revision = put(&local, "x", 1, "").await;
    let mut stream = wait(&local, wait_for("x")).await;
    assert_eq!(brief(&next(&mut stream).await.unwrap()), (Outcome::Waiting, 0, 2));
    a.applied(revision).await;
    assert_eq!(brief(&next(&mut stream).await.unwrap()), (Outcome::Waiting, 1, 2));
    b.applied(revision).await;
    let done = next(&mut stream).await.unwrap();
    assert_eq!(brief(&done), (Outcome::Done, 2, 2));
    assert_eq!(done.message, "done: 2 of 2 agents have applied it, 0 failed, 0 are pending");
    assert_ended(stream).await;
}

#[tokio::test(start_paused = true)]
async fn it_fails_when_too_many_agents_failed_for_good_and_not_before() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    let revision = put(&local, "x", 1, "").await;
    let mut stream = wait(&local, wait_for("x")).await;
    next(&mut stream).await.unwrap();
    a.failed(revision, "x", true).await;
    let message = next(&mut stream).await.unwrap();
    assert_eq!((message.outcome(), message.propagation.as_ref().unwrap().failed), (Outcome::Waiting, 1));
    a.failed(revision, "x", false).await;
    let message = next(&mut stream).await.unwrap();
    assert_eq!(message.outcome(), Outcome::Failed);
    assert_eq!(message.propagation.unwrap().failures[0].exception.as_ref().unwrap().message, "out of order");
    assert_ended(stream).await;
    // One may fail, and the other one is half of them.
    let mut b = Agent::connect(&local, "b", "z0").await;
    b.applied(revision).await;
    let enough = v1::WaitForRequest { percent: 50.0, max_failed: 1, ..wait_for("x") };
    assert_eq!(brief(&next(&mut wait(&local, enough).await).await.unwrap()), (Outcome::Done, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn it_times_out_with_a_sign_of_life_now_and_then() {
    let local = start();
    let _a = Agent::connect(&local, "a", "z0").await;
    put(&local, "x", 1, "").await;
    let started = Instant::now();
    let mut stream = wait(&local, v1::WaitForRequest { timeout_ms: 12_000, ..wait_for("x") }).await;
    let mut outcomes = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        outcomes.push((message.outcome(), started.elapsed().as_secs()));
    }
    let waiting = Outcome::Waiting;
    assert_eq!(outcomes, [(waiting, 0), (waiting, 5), (waiting, 10), (Outcome::TimedOut, 12)]);
}

#[tokio::test(start_paused = true)]
async fn fewer_agents_than_demanded_are_never_enough() {
    let local = start();
    let revision = put(&local, "x", 1, "").await;
    let mut stream = wait(&local, v1::WaitForRequest { min_agents: 2, ..wait_for("x") }).await;
    assert_eq!(brief(&next(&mut stream).await.unwrap()), (Outcome::Waiting, 0, 0), "nobody is not everybody");
    let mut agents = Vec::new();
    for id in ["a", "b"] {
        let mut agent = Agent::connect(&local, id, "z0").await;
        agent.applied(revision).await;
        agents.push(agent);
    }
    let last = loop {
        let message = next(&mut stream).await.unwrap();
        if message.outcome() != Outcome::Waiting {
            break message;
        }
    };
    assert_eq!(brief(&last), (Outcome::Done, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_lost_meanwhile_is_no_longer_waited_for() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    let b = Agent::connect(&local, "b", "z0").await;
    let revision = put(&local, "x", 1, "").await;
    a.applied(revision).await;
    let mut stream = wait(&local, wait_for("x")).await;
    let count_lost = wait(&local, v1::WaitForRequest { count_lost: true, timeout_ms: 60_000, ..wait_for("x") }).await;
    assert_eq!(brief(&next(&mut stream).await.unwrap()), (Outcome::Waiting, 1, 2));
    drop(b);
    let gone = Instant::now();
    let last = loop {
        let message = next(&mut stream).await.unwrap();
        if message.outcome() != Outcome::Waiting {
            break message;
        }
    };
    assert_eq!((brief(&last), gone.elapsed().as_secs()), ((Outcome::Done, 1, 1), 30));
    assert_eq!(last.propagation.unwrap().excluded[0].agents, ["b"]);
    let mut outcomes = count_lost;
    let mut last = None;
    while let Some(message) = outcomes.message().await.unwrap() {
        last = Some(brief(&message));
    }
    assert_eq!(last, Some((Outcome::TimedOut, 1, 2)));
}

#[tokio::test(start_paused = true)]
async fn the_newest_version_counts_and_so_does_the_end() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    put(&local, "x", 1, "").await;
    let mut stream = wait(&local, wait_for("x")).await;
    assert_eq!(next(&mut stream).await.unwrap().propagation.unwrap().revision, 1);
    let newer = put(&local, "x", 2, "").await;
    assert_eq!(next(&mut stream).await.unwrap().propagation.unwrap().revision, newer);
    let end = delete(&local, "x").await;
    let message = next(&mut stream).await.unwrap();
    assert_eq!((message.outcome(), message.propagation.unwrap().revision), (Outcome::Waiting, end));
    a.applied(end).await;
    assert_eq!(next(&mut stream).await.unwrap().outcome(), Outcome::Done);
}

#[tokio::test(start_paused = true)]
async fn many_changes_are_few_messages() {
    let local = start();
    let mut agents = Vec::new();
    for n in 0..20 {
        agents.push(Agent::connect(&local, &format!("a{n}"), "z0").await);
    }
    let revision = put(&local, "x", 1, "").await;
    let mut stream = wait(&local, wait_for("x")).await;
    next(&mut stream).await.unwrap();
    for agent in &mut agents {
        agent.applied(revision).await;
    }
    let mut messages = 0;
    while let Some(message) = stream.message().await.unwrap() {
        messages += 1;
        assert_ne!(message.outcome(), Outcome::TimedOut);
    }
    assert!(messages <= 4, "{messages} messages for 20 reports at once");
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_by_its_name() {
    let local = start();
    put(&local, "x", 1, "").await;
    let mut fleet = fleet(&local).await;
    for percent in [f64::NAN, -1.0, 100.5] {
        let refused = fleet.wait_for(v1::WaitForRequest { percent, ..wait_for("x") }).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with("percent"), "{refused}");
    }
    assert_eq!(fleet.wait_for(wait_for("nothing")).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn calls_that_go_on_are_limited_and_ended_by_a_bus_that_stops() {
    let limits = nimbus_bus::Limits { watches: 1, ..nimbus_bus::Limits::default() };
    let local = Local::start(nimbus_bus::Config { limits, ..config() });
    let _a = Agent::connect(&local, "a", "z0").await;
    put(&local, "x", 1, "").await;
    let mut fleet = fleet(&local).await;
    let mut stream = fleet.wait_for(wait_for("x")).await.unwrap().into_inner();
    next(&mut stream).await.unwrap();
    let refused = fleet.watch_status(v1::WatchStatusRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.get_error_details().error_info().unwrap().metadata["limit"], "watches");
    local.stop.notify_one();
    let ended = loop {
        match next(&mut stream).await {
            Ok(message) => assert_eq!(message.outcome(), Outcome::Waiting),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unavailable);
    let wait = ended.get_error_details().retry_info().unwrap().retry_delay.unwrap();
    assert!(wait <= Duration::from_secs(5));
}
