//! How agents fare, in a few words.

use nimbus_wire::v1::{self, AgentState, Phase};

use crate::{
    agent_table::{failures, lag, position, reason, state},
    output::{Cell, Tone},
};

#[test]
fn an_agent_that_is_behind_says_by_how_much() {
    let agent =
        |applied, last_relevant, lag_ms| v1::AgentInfo { applied, last_relevant, lag_ms, ..v1::AgentInfo::default() };
    let check = |agent: v1::AgentInfo, at: &str, behind: &str, tone| {
        assert_eq!((position(&agent), lag(&agent)), (Cell::from(at).tone(tone), Cell::from(behind).tone(tone)));
    };
    check(agent(7, 7, 0), "7", "", Tone::Plain);
    // What concerns others has no part in it.
    check(agent(7, 5, 0), "7", "", Tone::Plain);
    check(agent(5, 7, 3_000), "5 of 7", "3s", Tone::Warning);
    check(agent(5, 7, 0), "5 of 7", "long", Tone::Warning);
}

#[test]
fn who_is_not_there_says_for_how_long() {
    let check = |now: AgentState, expected: &str, tone| {
        let agent = v1::AgentInfo { state: now.into(), state_ms: 65_000, ..v1::AgentInfo::default() };
        assert_eq!(state(&agent), Cell::from(expected).tone(tone));
    };
    check(AgentState::Connected, "connected", Tone::Good);
    check(AgentState::Away, "away 65s", Tone::Warning);
    check(AgentState::Lost, "lost 65s", Tone::Bad);
}

#[test]
fn reasons_are_the_words_of_the_agent_and_what_comes_next() {
    let key = |name: &str| v1::Key { kind: "demo.v1.Zone".to_owned(), namespace: String::new(), name: name.to_owned() };
    let failed = v1::Exception {
        key: Some(key("a")),
        phase: Phase::Failed.into(),
        code: "DISK".to_owned(),
        message: "no space left\n".to_owned(),
        retryable: true,
        ..v1::Exception::default()
    };
    assert_eq!(reason(&failed), "DISK: no space left");
    let for_good = v1::Exception { retryable: false, ..failed.clone() };
    assert_eq!(reason(&for_good), "DISK: no space left (not tried again before it changes)");
    let held =
        v1::Exception { phase: Phase::Pending.into(), waits_for: vec![key("b"), key("c")], ..v1::Exception::default() };
    assert_eq!(reason(&held), "waits for demo.v1.Zone/b, demo.v1.Zone/c");
    assert_eq!(reason(&v1::Exception { retryable: true, ..v1::Exception::default() }), "no reason given");

    assert_eq!(failures(std::slice::from_ref(&held)), "");
    assert_eq!(failures(&[held, failed.clone(), for_good]), "demo.v1.Zone/a: DISK: no space left (and 1 more)");
}
