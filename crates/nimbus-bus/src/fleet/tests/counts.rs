//! Who counts as what.

use nimbus_core::{Audience, Selector};
use nimbus_wire::v1::{Phase, exclusion::Reason};
use tonic::Code;

use super::*;

/// One agent of generation 2 at revision 2: marks, what it says, and what that counts as.
#[test]
fn watermarks_and_exceptions_decide_what_an_agent_counts_as() {
    fn check(received: u64, applied: u64, exceptions: &[v1::Exception], expected: [u32; 7]) {
        let mut land = Land::new();
        land.connect("a", scope("a", "z", &[]), None);
        land.put("x", 1, Audience::Everyone);
        land.put("x", 2, Audience::Everyone);
        land.say("a", Said { received, applied, exceptions: exceptions.to_vec(), ..Said::default() })
            .unwrap();
        assert_eq!(numbers(&land.of_object("x")), expected, "{received} {applied} {exceptions:?}");
    }
    let final_failure = || exception("x", 2, Phase::Failed);
    let failure = || v1::Exception { retryable: true, ..final_failure() };
    //                                   agents, received, applied, failed, pending, degraded, for good
    check(0, 0, &[], [1, 0, 0, 0, 1, 0, 0]);
    check(1, 1, &[], [1, 0, 0, 0, 1, 0, 0]);
    check(2, 1, &[], [1, 1, 0, 0, 1, 0, 0]);
    check(2, 2, &[], [1, 1, 1, 0, 0, 0, 0]);
    check(2, 2, &[failure()], [1, 1, 0, 1, 0, 0, 0]);
    check(2, 2, &[final_failure()], [1, 1, 0, 1, 0, 0, 1]);
    check(2, 2, &[exception("x", 2, Phase::Pending)], [1, 1, 0, 0, 1, 0, 0]);
    check(2, 2, &[exception("x", 2, Phase::Unspecified)], [1, 1, 0, 0, 1, 0, 0]);
    check(2, 2, &[exception("x", 2, Phase::Degraded)], [1, 1, 1, 0, 0, 1, 0]);
    check(2, 2, &[exception("other", 1, Phase::Failed)], [1, 1, 1, 0, 0, 0, 0]);
    // Not there yet: only a failure of this very generation counts, and only once the change has arrived: one that only
    // changes labels has the generation that failed before.
    check(1, 1, &[failure()], [1, 0, 0, 0, 1, 0, 0]);
    check(2, 1, &[failure()], [1, 1, 0, 1, 0, 0, 0]);
    check(2, 1, &[exception("x", 1, Phase::Failed)], [1, 1, 0, 0, 1, 0, 0]);
    check(2, 1, &[exception("x", 2, Phase::Degraded)], [1, 1, 0, 0, 1, 0, 0]);
}

#[test]
fn those_who_do_not_count_are_excluded_with_a_reason() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &["Alpha"]), None);
    land.connect("b", scope("b", "z", &["Beta"]), None);
    let names = v1::Filter { names: vec!["y".into()], ..Default::default() };
    land.connect("c", filtered(scope("c", "z", &[]), &names), None);
    land.connect("d", scope("d", "z", &[]), None);
    land.put("x", 1, named(&["a", "b", "c", "d", "never"]));
    land.cut("d");
    land.pass(LOST_AFTER - 1);
    assert_eq!(numbers(&land.of_object("x"))[0], 2, "who is away counts");
    land.pass(1);
    let found = land.of_object("x");
    assert_eq!(numbers(&found), [1, 0, 0, 0, 1, 0, 0]);
    assert_eq!(excluded(&found), [(Reason::Lost, 1), (Reason::NeverConnected, 1), (Reason::NotSubscribed, 2)]);
    assert_eq!(found.excluded[2].agents, ["b", "c"]);
    let survey = Survey { count_lost: true, ..everybody() };
    let found = land.survey(&Target::Object(key("x")), &survey).unwrap();
    assert_eq!(numbers(&found), [2, 0, 0, 0, 2, 0, 0], "as pending, if they are counted");
    assert_eq!(excluded(&found), [(Reason::NeverConnected, 1), (Reason::NotSubscribed, 2)]);
}

#[test]
fn an_audience_that_names_nobody_has_no_agents() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.put("x", 1, named(&[]));
    assert_eq!(numbers(&land.of_object("x")), [0; 7]);
}

/// A named agent is not sent an object again when the audience grows: the revision of the object rises, but the agent is
/// never told, and its watermark stays where it is. It counted as pending until the next bookmark.
#[test]
fn an_agent_that_was_named_before_the_audience_grew_keeps_what_it_has() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.connect("b", scope("b", "z", &[]), None);
    land.put("x", 1, named(&["a"]));
    land.applied("a", 1);
    assert_eq!(land.put("x", 1, named(&["a", "b"])), 2);
    assert_eq!(numbers(&land.of_object("x")), [2, 1, 1, 0, 1, 0, 0]);
    assert!(land.health("a").in_sync);
    assert!(!land.health("b").in_sync);
}

#[test]
fn only_agents_that_the_selector_matches_are_asked_about() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z0", &[]), None);
    land.connect("b", scope("b", "z1", &[]), None);
    land.put("x", 1, selector("zone in (z0,z1)"));
    land.applied("b", 1);
    let survey = Survey { selector: Selector::parse("zone=z1").unwrap(), ..everybody() };
    for target in [Target::Object(key("x")), Target::Revision(Revision(1))] {
        assert_eq!(numbers(&land.survey(&target, &survey).unwrap()), [1, 1, 1, 0, 0, 0, 0]);
    }
    assert_eq!(numbers(&land.of_object("x")), [2, 1, 1, 0, 1, 0, 0]);
}

#[test]
fn a_transaction_is_done_where_the_last_change_that_concerns_an_agent_is_applied() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z0", &[]), None);
    land.connect("b", scope("b", "z1", &[]), None);
    land.put("x", 1, selector("zone=z0"));
    land.put("y", 1, selector("zone=z1"));
    // Nothing of revision 2 is for `a`: it will not report it before the next bookmark.
    land.applied("a", 1);
    assert_eq!(numbers(&land.of_revision(1)), [2, 1, 1, 0, 1, 0, 0]);
    assert_eq!(numbers(&land.of_revision(2)), [2, 1, 1, 0, 1, 0, 0]);
    land.say(
        "b",
        Said { received: 2, applied: 2, exceptions: vec![exception("y", 1, Phase::Failed)], ..Said::default() },
    )
    .unwrap();
    assert_eq!(numbers(&land.of_revision(1)), [2, 2, 2, 0, 0, 0, 0], "what failed was not changed by it");
    let found = land.of_revision(2);
    assert_eq!(numbers(&found), [2, 2, 1, 1, 0, 0, 1]);
    assert_eq!(found.failures[0].agent, "b");
    assert_eq!(found.min_applied, 1);
}

#[test]
fn the_end_of_an_object_is_propagated_too() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.connect("b", scope("b", "z", &[]), None);
    land.put("x", 1, Audience::Everyone);
    land.applied("a", 1);
    assert_eq!(land.delete("x"), 2);
    let found = land.of_object("x");
    assert_eq!((found.revision, found.generation), (2, 0));
    assert_eq!(numbers(&found), [2, 0, 0, 0, 2, 0, 0]);
    land.applied("a", 2);
    let failed = vec![exception("x", 1, Phase::Failed)];
    land.say("b", Said { received: 2, applied: 2, exceptions: failed, ..Said::default() })
        .unwrap();
    assert_eq!(numbers(&land.of_object("x")), [2, 2, 1, 1, 0, 0, 1], "one could not remove it");
    assert_eq!(numbers(&land.of_revision(2)), [2, 2, 1, 1, 0, 0, 1]);
}

#[test]
fn what_does_not_exist_and_what_is_yet_to_come_are_refused() {
    let mut land = Land::new();
    land.put("x", 1, Audience::Everyone);
    let refused = |target| land.survey(&target, &everybody()).unwrap_err().code();
    assert_eq!(refused(Target::Object(key("nothing"))), Code::NotFound);
    assert_eq!(refused(Target::Revision(Revision(2))), Code::InvalidArgument);
}

#[test]
fn latencies_are_exact_for_recent_objects() {
    let mut land = Land::new();
    land.put("old", 1, Audience::Everyone);
    for agent in ["a", "b", "c"] {
        land.connect(agent, scope(agent, "z", &[]), None);
        land.applied(agent, 1);
    }
    land.at(1_000).put("x", 1, Audience::Everyone);
    for (ms, agent, received, applied) in
        [(1_005, "a", 2, 1), (1_010, "a", 2, 2), (1_020, "b", 2, 2), (1_200, "c", 2, 1)]
    {
        land.at(ms).say(agent, Said { received, applied, ..Said::default() }).unwrap();
    }
    let found = land.at(2_000).of_object("x");
    let received = found.received_latency.unwrap();
    assert_eq!((received.count, received.p50_ms, received.p90_ms, received.max_ms), (3, 20, 200, 200));
    let applied = found.applied_latency.unwrap();
    assert_eq!((applied.count, applied.p50_ms, applied.max_ms), (2, 10, 20));
    assert_eq!(found.age_ms, 1_000);
    assert_eq!(land.of_object("old").received_latency, None, "they came after it");
    assert_eq!(land.of_revision(2).received_latency.unwrap().count, 3);
}

#[test]
fn lists_are_bounded_and_counts_are_not() {
    let mut land = Land::new();
    for n in 0..10 {
        let id = format!("a{n}");
        land.connect(&id, scope(&id, "z", &[]), None);
    }
    land.put("x", 1, Audience::Everyone);
    let found = land.survey(&Target::Object(key("x")), &Survey { max_agents: 3, ..everybody() }).unwrap();
    assert_eq!((found.pending, found.pending_agents.len()), (10, 3));
}

/// What a lost report listed as an exception must not count as applied because the next one is further.
#[test]
fn a_lost_report_takes_no_watermark_forward_before_everything_is_told_again() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.put("x", 1, Audience::Everyone);
    land.say("a", Said { received: 1, applied: 0, full: true, ..Said::default() }).unwrap();
    land.open.get_mut("a").unwrap().sequence += 1;
    land.say("a", Said { received: 1, applied: 1, ..Said::default() }).unwrap();
    assert_eq!(numbers(&land.of_object("x")), [1, 1, 0, 0, 1, 0, 0]);
    land.say("a", Said { received: 1, applied: 1, ..Said::default() }).unwrap();
    assert_eq!(numbers(&land.of_object("x")), [1, 1, 0, 0, 1, 0, 0], "as long as it is not told in full");
    land.say("a", Said { received: 1, applied: 1, full: true, ..Said::default() }).unwrap();
    assert_eq!(numbers(&land.of_object("x")), [1, 1, 1, 0, 0, 0, 0]);
}

/// Something that was an exception may be one no longer, and not be done yet.
#[test]
fn a_watermark_that_falls_is_believed() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.put("x", 1, Audience::Everyone);
    let pending = exception("x", 1, Phase::Pending);
    land.say("a", Said { received: 1, applied: 1, exceptions: vec![pending], ..Said::default() })
        .unwrap();
    land.say("a", Said { received: 1, applied: 0, cleared: vec![key("x")], ..Said::default() })
        .unwrap();
    assert_eq!(numbers(&land.of_object("x")), [1, 1, 0, 0, 1, 0, 0]);
}
