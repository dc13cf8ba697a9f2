//! Changes of scope: watermarks say nothing until they are about the scope that the agent has now.

use nimbus_core::Audience;
use tonic::Code;

use super::*;

/// Two objects, one for each zone; the agent begins in `z0` and has applied everything.
fn land() -> Land {
    let mut land = Land::new();
    land.connect("a", scope("a", "z0", &[]), None);
    land.put("x", 1, selector("zone=z0"));
    land.put("y", 1, selector("zone=z1"));
    land.applied("a", 2);
    land
}

fn ask(land: &mut Land, zone: &str, scope_changes: u32) {
    let rescope = Some(scope("a", zone, &[]));
    land.say("a", Said { received: 2, applied: 2, rescope, scope_changes, ..Said::default() })
        .unwrap();
}

fn tell(land: &mut Land, scope_changes: u32) {
    land.say("a", Said { received: 2, applied: 2, scope_changes, ..Said::default() }).unwrap();
}

/// Agents and applied: of the object in `z0`, then of the one in `z1`.
fn counts(land: &Land) -> [(u32, u32); 2] {
    ["x", "y"].map(|name| {
        let found = land.of_object(name);
        (found.agents, found.applied)
    })
}

#[test]
fn watermarks_are_void_from_the_request_until_the_agent_has_the_new_scope() {
    let mut land = land();
    assert_eq!(counts(&land), [(1, 1), (0, 0)]);
    ask(&mut land, "z1", 0);
    assert_eq!(counts(&land), [(0, 0), (1, 0)], "at once");
    tell(&mut land, 0);
    assert_eq!(counts(&land), [(0, 0), (1, 0)], "a report of the old scope");
    assert!(land.take_rescope("a"));
    tell(&mut land, 0);
    assert_eq!(counts(&land), [(0, 0), (1, 0)], "the stream has not got to it yet");
    land.switch("a");
    tell(&mut land, 0);
    assert_eq!(counts(&land), [(0, 0), (1, 0)], "the agent has not got to it yet");
    tell(&mut land, 1);
    assert_eq!(counts(&land), [(0, 0), (1, 1)]);
}

#[test]
fn several_requests_before_the_stream_gets_to_them_are_one_change() {
    let mut land = land();
    ask(&mut land, "z2", 0);
    ask(&mut land, "z1", 0);
    assert!(land.take_rescope("a"));
    assert!(!land.take_rescope("a"));
    land.switch("a");
    tell(&mut land, 1);
    assert_eq!(counts(&land), [(0, 0), (1, 1)]);
}

#[test]
fn one_that_replaces_another_within_the_stream_is_one_change() {
    let mut land = land();
    ask(&mut land, "z2", 0);
    assert!(land.take_rescope("a"));
    ask(&mut land, "z1", 0);
    assert!(land.take_rescope("a"));
    land.switch("a");
    tell(&mut land, 1);
    assert_eq!(counts(&land), [(0, 0), (1, 1)]);
}

/// The stream tells of the first change after the second was asked for: whoever counts requests or notices alone takes
/// the marks of the first scope for those of the second.
#[test]
fn one_that_is_asked_for_before_the_notice_of_another_is_a_second_change() {
    let mut land = land();
    ask(&mut land, "z2", 0);
    assert!(land.take_rescope("a"));
    ask(&mut land, "z1", 0);
    land.switch("a");
    tell(&mut land, 1);
    assert_eq!(counts(&land), [(0, 0), (1, 0)], "these are marks of the scope in between");
    assert!(land.take_rescope("a"));
    land.switch("a");
    tell(&mut land, 1);
    assert_eq!(counts(&land), [(0, 0), (1, 0)]);
    tell(&mut land, 2);
    assert_eq!(counts(&land), [(0, 0), (1, 1)]);
}

#[test]
fn watermarks_begin_again_after_a_change_of_scope() {
    let mut land = land();
    ask(&mut land, "z1", 0);
    assert!(land.take_rescope("a"));
    land.switch("a");
    land.say("a", Said { received: 1, applied: 0, scope_changes: 1, ..Said::default() })
        .unwrap();
    let marks = |land: &Land| land.fleet.agent(&agent_id("a")).unwrap().entry.lock().progress.marks();
    assert_eq!((marks(&land).received.0, marks(&land).applied.0), (1, 0), "lower than before");
    land.say("a", Said { received: 2, applied: 1, scope_changes: 1, ..Said::default() })
        .unwrap();
    land.say("a", Said { received: 0, applied: 0, scope_changes: 1, ..Said::default() })
        .unwrap();
    assert_eq!((marks(&land).received.0, marks(&land).applied.0), (2, 0), "what is applied is as it is said");
}

#[test]
fn an_agent_cannot_include_changes_that_it_was_not_told_of() {
    let mut land = land();
    let refused = land.say("a", Said { scope_changes: 1, ..Said::default() }).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("scope_changes"), "{refused}");
}

#[test]
fn a_session_that_ends_before_the_change_was_included_carries_nothing_over() {
    let mut land = land();
    ask(&mut land, "z1", 0);
    land.cut("a");
    land.connect("a", scope("a", "z1", &[]), Some(2));
    assert_eq!(counts(&land), [(0, 0), (1, 0)]);
    let mut land = self::land();
    ask(&mut land, "z1", 0);
    ask(&mut land, "z0", 0);
    land.cut("a");
    land.connect("a", scope("a", "z0", &[]), Some(2));
    assert_eq!(counts(&land), [(1, 0), (0, 0)], "there and back again");
}

#[test]
fn a_report_answers_the_newest_change_that_was_sent_and_no_other() {
    let mut land = Land::new();
    land.put("old", 1, Audience::Everyone);
    land.connect("a", scope("a", "z0", &[]), None);
    let news = |land: &mut Land, received, applied| {
        let (_, news) = land.say("a", Said { received, applied, ..Said::default() }).unwrap();
        (news.received.map(|revision| revision.0), news.applied.map(|revision| revision.0))
    };
    land.sent("a", 1);
    assert_eq!(news(&mut land, 1, 1), (None, None), "the snapshot is older than the session");
    for spec in 2..=9 {
        land.put("x", spec, Audience::Everyone);
    }
    [3, 5, 8].into_iter().for_each(|revision| land.sent("a", revision));
    assert_eq!(news(&mut land, 5, 3), (Some(5), Some(3)));
    assert_eq!(news(&mut land, 6, 4), (None, None), "nothing of it was sent");
    // A bookmark says 9; 8 was the last that was sent.
    assert_eq!(news(&mut land, 9, 9), (Some(8), Some(8)));
    assert_eq!(news(&mut land, 9, 9), (None, None));
}
