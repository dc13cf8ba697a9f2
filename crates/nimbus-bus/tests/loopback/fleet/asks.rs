//! Questions that are answered at once.

use std::{collections::BTreeMap, time::Duration};

use nimbus_wire::v1::{self, AgentState, Verdict, frame::Frame, notice::Notice};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::{Agent, config, exception, fleet, key, put, start, target};
use crate::scripted::{KIND, Local, frame, until_bookmark};

fn names(list: &v1::ListAgentsResponse) -> Vec<&str> {
    list.agents.iter().map(|agent| &*agent.agent).collect()
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_in_pages_and_judged_by_what_concerns_them() {
    let local = start();
    put(&local, "x", 1, "").await;
    let mut a = Agent::connect(&local, "a", "z0").await;
    let mut b = Agent::connect(&local, "b", "z0").await;
    let c = Agent::connect(&local, "c", "z1").await;
    let _observer = local.bus().await.subscribe(v1::SubscribeRequest::default()).await.unwrap();
    let revision = put(&local, "y", 1, "zone=z0").await;
    a.applied(revision).await;
    b.failed(revision, "y", true).await;
    drop(c);
    let mut fleet = fleet(&local).await;
    // The end of its stream takes a moment to arrive.
    let all = loop {
        let all = fleet.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner();
        if all.away == 1 {
            break all;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((names(&all), all.connected, all.away, all.lost), (vec!["a", "b", "c"], 2, 1, 0));
    assert_eq!((all.revision, &*all.next_page_token), (revision, ""));
    let [a, b, c] = &all.agents[..] else { panic!("{all:?}") };
    assert_eq!((a.state(), a.applied, a.last_relevant, a.in_sync, a.lag_ms), (AgentState::Connected, 2, 2, true, 0));
    assert_eq!((&*a.software, &*a.kinds, &a.labels["zone"][..]), ("by hand", &[KIND.to_owned()][..], "z0"));
    assert_eq!((b.applied, b.in_sync, b.failed, b.exceptions.len()), (2, false, 1, 0));
    assert_eq!((c.state(), c.applied, c.last_relevant, c.in_sync), (AgentState::Away, 0, 1, false));

    let behind = v1::ListAgentsRequest { behind: true, details: true, page_size: 1, ..Default::default() };
    let page = fleet.list_agents(behind.clone()).await.unwrap().into_inner();
    assert_eq!((names(&page), &*page.next_page_token, page.connected, page.away), (vec!["b"], "b", 1, 1));
    assert_eq!(page.agents[0].exceptions[0].message, "out of order");
    let next = v1::ListAgentsRequest { page_token: page.next_page_token, ..behind.clone() };
    let page = fleet.list_agents(next).await.unwrap().into_inner();
    assert_eq!((names(&page), &*page.next_page_token), (vec!["c"], ""));

    for (request, expected) in [
        (v1::ListAgentsRequest { selector: "zone=z1".into(), ..Default::default() }, vec!["c"]),
        (v1::ListAgentsRequest { agents: vec!["b".into(), "nobody".into()], ..Default::default() }, vec!["b"]),
        (v1::ListAgentsRequest { states: vec![AgentState::Away.into()], ..Default::default() }, vec!["c"]),
        (v1::ListAgentsRequest { kinds: vec!["t.v1.Other".into()], ..behind }, vec![]),
    ] {
        let found = fleet.list_agents(request.clone()).await.unwrap().into_inner();
        assert_eq!(names(&found), expected, "{request:?}");
    }
    let bad = v1::ListAgentsRequest { selector: "zone in".into(), ..Default::default() };
    assert_eq!(fleet.list_agents(bad).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn propagation_counts_what_agents_report_and_how_long_it_took() {
    let local = start();
    let mut a = Agent::connect(&local, "a", "z0").await;
    let mut b = Agent::connect(&local, "b", "z1").await;
    let revision = put(&local, "x", 1, "").await;
    tokio::time::advance(Duration::from_millis(40)).await;
    a.applied(revision).await;
    let exceptions = vec![exception("x", v1::Phase::Degraded, true)];
    b.report(v1::ReportRequest { received: revision, applied: revision, exceptions, ..Default::default() })
        .await;
    let mut fleet = fleet(&local).await;
    let request = v1::GetPropagationRequest { target: target("x"), ..Default::default() };
    let found = fleet.get_propagation(request).await.unwrap().into_inner().propagation.unwrap();
    assert_eq!((found.epoch, found.revision, found.generation), (7, revision, 1));
    assert_eq!((found.agents, found.received, found.applied, found.degraded), (2, 2, 2, 1));
    assert_eq!(found.degradations[0].agent, "b");
    let applied = found.applied_latency.unwrap();
    assert_eq!(applied.count, 2);
    assert!((40..60).contains(&applied.max_ms), "{applied:?}");
    assert!(local.metric("nimbus_bus_applied_seconds_count 2"), "each agent once");

    let refused = |target| v1::GetPropagationRequest { target, ..Default::default() };
    let missing = fleet.get_propagation(refused(target("nothing"))).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing}");
    let none = fleet.get_propagation(refused(None)).await.unwrap_err();
    assert_eq!(none.code(), Code::InvalidArgument);
    let above = Some(v1::Target { target: Some(v1::target::Target::Revision(revision + 1)) });
    assert_eq!(fleet.get_propagation(refused(above)).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn watermarks_are_void_until_the_agent_has_received_its_new_scope() {
    let local = start();
    put(&local, "x", 1, "zone=z0").await;
    let revision = put(&local, "y", 1, "zone=z1").await;
    let mut agent = Agent::connect(&local, "a", "z0").await;
    let mut fleet = fleet(&local).await;
    let mut count = async |name| {
        let request = v1::GetPropagationRequest { target: target(name), ..Default::default() };
        let found = fleet.get_propagation(request).await.unwrap().into_inner().propagation.unwrap();
        (found.agents, found.applied)
    };
    agent.applied(revision).await;
    assert_eq!((count("x").await, count("y").await), ((1, 1), (0, 0)));
    let labels = BTreeMap::from([("zone".to_owned(), "z1".to_owned())]);
    let rescope = Some(v1::Rescope { kinds: vec![KIND.into()], agent_labels: labels, ..Default::default() });
    agent
        .report(v1::ReportRequest { received: 2, applied: 2, rescope, ..Default::default() })
        .await;
    assert_eq!((count("x").await, count("y").await), ((0, 0), (1, 0)));
    let notice = frame(&mut agent.frames).await.unwrap();
    assert!(matches!(notice, Frame::Notice(v1::Notice { notice: Some(Notice::ScopeChanged(_)) })), "{notice:?}");
    agent.applied(2).await;
    assert_eq!(count("y").await, (1, 0), "it has not said that this includes the new scope");
    until_bookmark(&mut agent.frames).await;
    agent
        .report(v1::ReportRequest { received: 2, applied: 2, scope_changes: 1, ..Default::default() })
        .await;
    assert_eq!((count("x").await, count("y").await), ((0, 0), (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn an_explanation_follows_what_is_waited_for() {
    let local = start();
    for name in ["x", "zone"] {
        put(&local, name, 1, "").await;
    }
    put(&local, "far", 1, "zone in (z1,z2)").await;
    let mut agent = Agent::connect(&local, "a", "z0").await;
    let waits_for = vec![key("zone"), key("nothing")];
    let exceptions = vec![
        v1::Exception { waits_for, message: String::new(), ..exception("x", v1::Phase::Pending, true) },
        exception("zone", v1::Phase::Failed, false),
    ];
    agent
        .report(v1::ReportRequest { received: 3, applied: 3, exceptions, ..Default::default() })
        .await;
    let mut fleet = fleet(&local).await;
    let mut explain = async |agent: &str, name| {
        let request = v1::ExplainRequest { agent: agent.into(), object: Some(key(name)) };
        fleet.explain(request).await.unwrap().into_inner()
    };
    let held = explain("a", "x").await;
    assert_eq!((held.verdict(), held.generation, held.revision), (Verdict::Held, 1, 1));
    assert_eq!(held.explanation, "t.v1.Alpha/x waits for t.v1.Alpha/zone, t.v1.Alpha/nothing");
    let hops: Vec<_> = held.chain.iter().map(|hop| &*hop.explanation).collect();
    assert_eq!(
        hops,
        [
            "t.v1.Alpha/zone failed: out of order (not tried again before it changes)",
            "t.v1.Alpha/nothing does not exist"
        ]
    );
    assert_eq!(held.agent.unwrap().exceptions.len(), 2);
    let far = explain("a", "far").await;
    assert_eq!(far.verdict(), Verdict::NotInAudience);
    assert_eq!(far.rule, "audience is zone in (z1,z2), the agent's labels are zone=z0");
    assert_eq!(explain("nobody", "x").await.verdict(), Verdict::UnknownAgent);
    assert_eq!(explain("a", "nothing").await.verdict(), Verdict::NoSuchObject);
}

#[tokio::test(start_paused = true)]
async fn statuses_beyond_the_limit_are_refused_and_counted() {
    let limits = nimbus_bus::Limits { statuses: 2, ..nimbus_bus::Limits::default() };
    let local = Local::start(nimbus_bus::Config { limits, ..config() });
    let mut agent = Agent::connect(&local, "a", "z0").await;
    let status = |name| v1::ObjectStatus {
        key: Some(key(name)),
        generation: 1,
        status: Some(prost_types::Any { type_url: "t/t.v1.Status".into(), value: vec![1] }),
    };
    let statuses = ["x", "y", "z"].map(status).into();
    let answer = agent.report(v1::ReportRequest { statuses, ..Default::default() }).await;
    assert_eq!(answer.statuses_refused, 1);
}

#[tokio::test(start_paused = true)]
async fn the_fleet_is_serving_and_counted() {
    let local = start();
    let _agent = Agent::connect(&local, "a", "z0").await;
    let mut health = HealthClient::new(local.channel().await);
    let request = HealthCheckRequest { service: "nimbus.v1.Fleet".into() };
    assert_eq!(health.check(request).await.unwrap().into_inner().status, 1);
    assert!(local.metric(r#"nimbus_bus_agents{state="connected"} 1"#));
    assert!(local.metric(r#"nimbus_bus_used{limit="agents"} 1"#));
    assert!(local.metric(r#"nimbus_bus_limit{limit="agents"} 100000"#));
}
