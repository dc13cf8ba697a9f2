//! `WatchStatus`: levels, not edges.

use nimbus_wire::v1::{self, AgentState, watch_status_response::Event};
use tokio::time::Instant;
use tonic::{Code, Streaming};
use tonic_types::StatusExt as _;

use super::{Agent, exception, fleet, key, next, put, start};
use crate::scripted::{KIND, Local};

async fn watch(local: &Local, request: v1::WatchStatusRequest) -> Streaming<v1::WatchStatusResponse> {
    fleet(local).await.watch_status(request).await.unwrap().into_inner()
}

async fn event(stream: &mut Streaming<v1::WatchStatusResponse>) -> Event {
    next(stream).await.unwrap().event.unwrap()
}

async fn report(stream: &mut Streaming<v1::WatchStatusResponse>) -> v1::AgentReport {
    match event(stream).await {
        Event::Report(report) => report,
        other => panic!("{other:?}"),
    }
}

async fn info(stream: &mut Streaming<v1::WatchStatusResponse>) -> v1::AgentInfo {
    report(stream).await.agent.unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_begins_with_all_that_is_known_and_then_follows() {
    let local = start();
    put(&local, "x", 1, "").await;
    let mut a = Agent::connect(&local, "a", "z0").await;
    let _b = Agent::connect(&local, "b", "z1").await;
    let mut stream = watch(&local, v1::WatchStatusRequest::default()).await;
    assert_eq!(info(&mut stream).await.agent, "a");
    assert_eq!(info(&mut stream).await.agent, "b");
    assert_eq!(event(&mut stream).await, Event::CaughtUp(v1::Caught { epoch: 7, revision: 1 }));
    a.applied(1).await;
    let found = info(&mut stream).await;
    assert_eq!((&*found.agent, found.applied, found.in_sync), ("a", 1, true));
    a.failed(1, "x", true).await;
    let found = info(&mut stream).await;
    assert_eq!((found.in_sync, found.failed, &*found.exceptions[0].message), (false, 1, "out of order"));
}

#[tokio::test(start_paused = true)]
async fn a_chatty_agent_is_sent_once_for_many_reports_and_starves_nobody() {
    let local = start();
    let mut chatty = Agent::connect(&local, "a", "z0").await;
    let mut quiet = Agent::connect(&local, "b", "z0").await;
    for n in 1..=100 {
        put(&local, "x", n, "").await;
    }
    let mut stream = watch(&local, v1::WatchStatusRequest::default()).await;
    while !matches!(event(&mut stream).await, Event::CaughtUp(_)) {}
    for revision in 1..=100 {
        chatty.applied(revision).await;
        if revision == 50 {
            quiet.applied(100).await;
        }
    }
    let (mut messages, mut quiet_at) = (0, None);
    loop {
        let found = info(&mut stream).await;
        messages += 1;
        match &*found.agent {
            "a" if found.applied == 100 && quiet_at.is_some() => break,
            "b" => quiet_at = Some(messages),
            _ => {}
        }
    }
    assert!(messages <= 10, "{messages} messages for 101 reports");
}

#[tokio::test(start_paused = true)]
async fn ends_of_sessions_losses_and_departures_are_told() {
    let local = start();
    let a = Agent::connect(&local, "a", "z0").await;
    let mut b = Agent::connect(&local, "b", "z0").await;
    let mut stream = watch(&local, v1::WatchStatusRequest::default()).await;
    while !matches!(event(&mut stream).await, Event::CaughtUp(_)) {}
    drop(a);
    let gone = Instant::now();
    let found = info(&mut stream).await;
    assert_eq!((&*found.agent, found.state()), ("a", AgentState::Away));
    let found = info(&mut stream).await;
    assert_eq!((&*found.agent, found.state(), gone.elapsed().as_secs()), ("a", AgentState::Lost, 30));
    let _a = Agent::connect(&local, "a", "z0").await;
    let found = info(&mut stream).await;
    assert_eq!((&*found.agent, found.state()), ("a", AgentState::Connected));
    b.report(v1::ReportRequest { leaving: true, ..Default::default() }).await;
    assert_eq!(info(&mut stream).await.agent, "b");
    drop(b);
    assert_eq!(event(&mut stream).await, Event::Forgotten("b".into()));
}

#[tokio::test(start_paused = true)]
async fn only_what_is_selected_is_sent() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    let mut b = Agent::connect(&local, "b", "z1").await;
    let request = v1::WatchStatusRequest { kinds: vec!["t.v1.Other".into()], selector: "zone=z0".into() };
    let mut stream = watch(&local, request).await;
    assert_eq!(info(&mut stream).await.agent, "a");
    assert!(matches!(event(&mut stream).await, Event::CaughtUp(_)));
    b.applied(0).await;
    a.failed(0, "x", true).await;
    let found = info(&mut stream).await;
    assert_eq!((&*found.agent, found.failed, found.exceptions.len()), ("a", 0, 0), "of another kind");
    // Who no longer matches is gone, and who matches now is new.
    let to = |zone: &str| v1::Rescope {
        kinds: vec![KIND.into()],
        agent_labels: [("zone".to_owned(), zone.to_owned())].into(),
        ..Default::default()
    };
    a.report(v1::ReportRequest { rescope: Some(to("z1")), ..Default::default() }).await;
    assert_eq!(event(&mut stream).await, Event::Forgotten("a".into()));
    b.report(v1::ReportRequest { rescope: Some(to("z0")), ..Default::default() }).await;
    assert_eq!(info(&mut stream).await.agent, "b");
}

#[tokio::test(start_paused = true)]
async fn statuses_are_sent_when_they_are_new_or_changed() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    let status = |name: &str, value: u8| v1::ObjectStatus {
        key: Some(key(name)),
        generation: 1,
        status: Some(prost_types::Any { type_url: "t/t.v1.Status".into(), value: vec![value] }),
    };
    a.report(v1::ReportRequest { statuses: vec![status("x", 1), status("y", 1)], ..Default::default() })
        .await;
    let mut stream = watch(&local, v1::WatchStatusRequest::default()).await;
    assert_eq!(report(&mut stream).await.statuses, [status("x", 1), status("y", 1)]);
    assert!(matches!(event(&mut stream).await, Event::CaughtUp(_)));
    a.report(v1::ReportRequest { statuses: vec![status("x", 2), status("y", 1)], ..Default::default() })
        .await;
    assert_eq!(report(&mut stream).await.statuses, [status("x", 2)]);
    let exceptions = vec![exception("x", v1::Phase::Degraded, true)];
    a.report(v1::ReportRequest { exceptions, ..Default::default() }).await;
    let found = report(&mut stream).await;
    assert_eq!((found.statuses.len(), found.agent.unwrap().degraded), (0, 1));
    a.report(v1::ReportRequest { full: true, statuses: vec![status("x", 2)], ..Default::default() })
        .await;
    let over = v1::ObjectStatus { key: Some(key("y")), generation: 0, status: None };
    assert_eq!(report(&mut stream).await.statuses, [over]);
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_stops_ends_a_watch() {
    let local = start();
    let mut stream = watch(&local, v1::WatchStatusRequest::default()).await;
    assert!(matches!(event(&mut stream).await, Event::CaughtUp(_)));
    local.stop.notify_one();
    let ended = next(&mut stream).await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    assert!(ended.get_error_details().retry_info().is_some());
}
