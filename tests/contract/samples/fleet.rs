//! Samples of `fleet.proto`.

use nimbus_wire::v1::{
    AgentException, AgentInfo, AgentReport, AgentState, Caught, Exclusion, ExplainRequest, ExplainResponse,
    GetPropagationRequest, GetPropagationResponse, Hop, Latency, ListAgentsRequest, ListAgentsResponse, PendingAgent,
    Propagation, Restarted, Target, Verdict, WaitForRequest, WaitForResponse, WatchStatusRequest, WatchStatusResponse,
    exclusion::Reason, target, wait_for_response::Outcome, watch_status_response as watch,
};

use crate::{
    golden::Case,
    samples::{
        bus::{agent_event, exception, filter, object_status},
        labels,
        object::key,
        strings,
    },
};

pub(super) fn cases() -> Vec<Case> {
    [agents(), propagations(), waits(), watches(), explanations()]
        .into_iter()
        .flatten()
        .collect()
}

fn agents() -> Vec<Case> {
    let states = [AgentState::Connected, AgentState::Away, AgentState::Lost];
    let states = states.map(|state| Case::part(state.as_str_name(), AgentInfo { state: state.into(), ..agent_info() }));
    let mut cases = vec![
        Case::whole(agent_info()),
        Case::whole(ListAgentsRequest {
            selector: "zone in (a,b)".into(),
            agents: strings(["switch-1", "switch-2"]),
            states: vec![AgentState::Away.into(), AgentState::Lost.into()],
            kinds: strings(["demo.v1.Policy"]),
            behind: true,
            details: true,
            page_size: 100,
            page_token: "switch-1".into(),
        }),
        Case::whole(ListAgentsResponse {
            agents: vec![agent_info()],
            next_page_token: "switch-1".into(),
            connected: 9_900,
            away: 90,
            lost: 10,
            epoch: 0x0102_0304_0506_0708,
            revision: 301,
        }),
    ];
    cases.extend(states);
    cases
}

fn propagations() -> Vec<Case> {
    let reasons = [Reason::Lost, Reason::NeverConnected, Reason::NotSubscribed];
    let reasons = reasons.map(|reason| Case::part(reason.as_str_name(), exclusion(reason)));
    let mut cases = vec![
        Case::part("object", object()),
        Case::part("revision", revision()),
        Case::whole(GetPropagationRequest {
            target: Some(object()),
            selector: "zone=a".into(),
            max_agents: 50,
            count_lost: true,
        }),
        Case::whole(GetPropagationResponse { propagation: Some(propagation()) }),
        Case::whole(propagation()),
        Case::whole(agent_exception()),
        Case::whole(pending_agent()),
        Case::whole(latency()),
    ];
    cases.extend(reasons);
    cases
}

fn waits() -> Vec<Case> {
    let outcomes = [Outcome::Waiting, Outcome::Done, Outcome::Failed, Outcome::TimedOut];
    let response = |outcome: Outcome| WaitForResponse {
        propagation: Some(propagation()),
        outcome: outcome.into(),
        message: "9 of 10 agents".into(),
    };
    let mut cases = vec![Case::whole(WaitForRequest {
        target: Some(revision()),
        selector: "zone=a".into(),
        percent: 99.5,
        max_failed: 2,
        min_agents: 10,
        timeout_ms: 30_000,
        count_lost: true,
        max_agents: 50,
    })];
    cases.extend(outcomes.map(|outcome| Case::part(outcome.as_str_name(), response(outcome))));
    cases
}

fn watches() -> Vec<Case> {
    let event = |part, event| Case::part(part, WatchStatusResponse { event: Some(event) });
    vec![
        Case::whole(WatchStatusRequest { kinds: strings(["demo.v1.Policy"]), selector: "zone=a".into() }),
        event("report", watch::Event::Report(agent_report())),
        event("forgotten", watch::Event::Forgotten("switch-9".into())),
        event("caught_up", watch::Event::CaughtUp(caught())),
        event("restarted", watch::Event::Restarted(Restarted {})),
        Case::whole(agent_report()),
        Case::whole(caught()),
        Case::whole(Restarted {}),
    ]
}

fn explanations() -> Vec<Case> {
    let verdicts = [
        Verdict::NoSuchObject,
        Verdict::UnknownAgent,
        Verdict::KindNotSubscribed,
        Verdict::FilteredOut,
        Verdict::NotInAudience,
        Verdict::NotReceived,
        Verdict::Received,
        Verdict::Held,
        Verdict::Pending,
        Verdict::Failed,
        Verdict::Applied,
        Verdict::Degraded,
        Verdict::Removed,
    ];
    let mut cases = vec![
        Case::whole(ExplainRequest { agent: "switch-1".into(), object: Some(key()) }),
        Case::whole(ExplainResponse {
            verdict: Verdict::Held.into(),
            explanation: "waits for demo.v1.Zone/a".into(),
            rule: "zone in (a,b)".into(),
            generation: 3,
            revision: 301,
            exception: Some(exception()),
            chain: vec![hop(Verdict::Failed)],
            agent: Some(agent_info()),
            received_after_ms: 5,
            applied_after_ms: 25,
        }),
    ];
    cases.extend(verdicts.map(|verdict| Case::part(verdict.as_str_name(), hop(verdict))));
    cases
}

fn agent_info() -> AgentInfo {
    AgentInfo {
        agent: "switch-1".into(),
        labels: labels([("role", "edge"), ("zone", "a")]),
        state: AgentState::Connected.into(),
        state_ms: 60_000,
        last_seen_ms: 1_500,
        software: "switch-agent 1.2".into(),
        session: 0x1112_1314_1516_1718,
        kinds: strings(["demo.v1.Policy", "demo.v1.Zone"]),
        filter: Some(filter()),
        received: 301,
        applied: 300,
        last_relevant: 302,
        in_sync: true,
        lag_ms: 250,
        failed: 1,
        pending: 2,
        degraded: 3,
        exceptions: vec![exception()],
        events: vec![agent_event()],
    }
}

fn object() -> Target {
    Target { target: Some(target::Target::Object(key())) }
}

fn revision() -> Target {
    Target { target: Some(target::Target::Revision(301)) }
}

fn propagation() -> Propagation {
    Propagation {
        epoch: 0x0102_0304_0506_0708,
        revision: 301,
        generation: 3,
        age_ms: 1_500,
        agents: 10_000,
        received: 9_990,
        applied: 9_980,
        failed: 5,
        pending: 15,
        degraded: 2,
        failed_for_good: 1,
        min_applied: 299,
        failures: vec![agent_exception()],
        pending_agents: vec![pending_agent()],
        degradations: vec![agent_exception()],
        excluded: vec![exclusion(Reason::Lost)],
        received_latency: Some(latency()),
        applied_latency: Some(latency()),
    }
}

fn agent_exception() -> AgentException {
    AgentException { agent: "switch-1".into(), exception: Some(exception()) }
}

fn pending_agent() -> PendingAgent {
    PendingAgent {
        agent: "switch-2".into(),
        state: AgentState::Away.into(),
        received: true,
        exception: Some(exception()),
        last_seen_ms: 1_500,
    }
}

fn exclusion(reason: Reason) -> Exclusion {
    Exclusion { reason: reason.into(), count: 10, agents: strings(["switch-3", "switch-4"]) }
}

fn latency() -> Latency {
    Latency { count: 9_980, p50_ms: 5, p90_ms: 10, p99_ms: 25, max_ms: 250 }
}

fn agent_report() -> AgentReport {
    AgentReport { agent: Some(agent_info()), statuses: vec![object_status()] }
}

fn caught() -> Caught {
    Caught { epoch: 0x0102_0304_0506_0708, revision: 301 }
}

fn hop(verdict: Verdict) -> Hop {
    Hop { object: Some(key()), verdict: verdict.into(), explanation: "failed: port 49 of 48".into() }
}
