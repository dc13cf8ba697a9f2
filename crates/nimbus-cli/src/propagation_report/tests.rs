//! Who does not have it, and why.

use nimbus_wire::v1::{self, AgentState, Phase, exclusion::Reason};

use crate::propagation_report::{Standing, count, laggards, latencies, missing};

#[test]
fn everybody_who_does_not_have_it_is_named_with_a_reason() {
    let exception = |code: &str, phase: Phase| v1::Exception {
        phase: phase.into(),
        code: code.to_owned(),
        retryable: true,
        ..v1::Exception::default()
    };
    let pending = |agent: &str, state: AgentState, received| v1::PendingAgent {
        agent: agent.to_owned(),
        state: state.into(),
        received,
        exception: None,
        last_seen_ms: 5_000,
    };
    let named = |agent: &str, exception| v1::AgentException { agent: agent.to_owned(), exception: Some(exception) };
    let excluded = |agent: &str, reason: Reason, count| v1::Exclusion {
        reason: reason.into(),
        count,
        agents: vec![agent.to_owned()],
    };
    let propagation = v1::Propagation {
        agents: 9,
        applied: 4,
        failed: 1,
        pending: 4,
        degraded: 1,
        failures: vec![named("a", exception("DISK", Phase::Failed))],
        pending_agents: vec![
            pending("b", AgentState::Connected, true),
            pending("c", AgentState::Connected, false),
            pending("d", AgentState::Away, false),
            v1::PendingAgent {
                exception: Some(exception("BUSY", Phase::Pending)),
                ..pending("e", AgentState::Connected, true)
            },
        ],
        degradations: vec![named("f", exception("SLOW", Phase::Degraded))],
        excluded: vec![excluded("g", Reason::Lost, 1), excluded("h", Reason::NeverConnected, 12)],
        ..v1::Propagation::default()
    };
    let said = |laggards: Vec<super::Laggard>| {
        let line = |laggard: super::Laggard| format!("{} {}: {}", laggard.agent, laggard.standing.word(), laggard.why);
        laggards.into_iter().map(line).collect::<Vec<_>>()
    };
    let all = [
        "a failed: DISK",
        "b pending: has received it, and is at work",
        "c pending: on its way",
        "d pending: away, last seen 5s ago",
        "e pending: BUSY",
        "f degraded: SLOW",
        "g excluded: lost: away for longer than the bus waits",
        "h excluded: named, but never seen by this bus",
    ];
    assert_eq!(said(laggards(&propagation)), all);
    assert_eq!(said(missing(&propagation)), all[..5]);
    assert_eq!(count(&propagation), 19);
    assert_eq!(laggards(&propagation)[0].standing, Standing::Failed);
    assert!(latencies(&propagation).is_none(), "nothing is known of them");
}
