//! What is kept of an agent: across sessions, over time, within bounds.

use nimbus_core::{Audience, Revision};
use nimbus_wire::v1::{AgentState, Phase};
use tonic::Code;

use super::*;
use crate::fleet::{
    advances::Advances,
    events::{Event, Events},
    progress::Marks,
    shape::Memo,
    statuses::{ObjectStatus, StatusLimits, Statuses},
    tally::latency,
    times::PublishTimes,
};

fn marks(land: &Land, id: &str) -> Marks {
    land.fleet.agent(&agent_id(id)).unwrap().entry.lock().progress.marks()
}

fn state(land: &Land, id: &str) -> Option<AgentState> {
    land.fleet.tick(land.now);
    let agent = land.fleet.agent(&agent_id(id))?;
    let entry = agent.entry.lock();
    Some(entry.presence.state(land.now, land.fleet.lost_after).0)
}

#[test]
fn progress_is_carried_over_to_a_session_that_goes_on_in_the_same_scope() {
    fn check(resumed: Option<u64>, zone: &str, expected: (u64, u64), exceptions: usize) {
        let mut land = Land::new();
        land.connect("a", scope("a", "z", &[]), None);
        for spec in 1..=5 {
            land.put("x", spec, Audience::Everyone);
        }
        let failed = vec![exception("x", 5, Phase::Failed)];
        land.say("a", Said { received: 5, applied: 4, exceptions: failed, ..Said::default() })
            .unwrap();
        land.cut("a");
        land.connect("a", scope("a", zone, &[]), resumed);
        let Marks { received, applied } = marks(&land, "a");
        assert_eq!((received.0, applied.0), expected, "{resumed:?} {zone}");
        let agent = land.fleet.agent(&agent_id("a")).unwrap();
        assert_eq!(agent.entry.lock().progress.exceptions.len(), exceptions);
        // Whatever was carried over, the first report of a session says everything.
        land.say("a", Said { received: 3, applied: 2, ..Said::default() }).unwrap();
        assert_eq!(marks(&land, "a"), Marks { received: Revision(3), applied: Revision(2) });
        assert!(agent.entry.lock().progress.exceptions.is_empty());
    }
    check(Some(5), "z", (5, 4), 1);
    // It comes back with less than it had.
    check(Some(3), "z", (3, 3), 1);
    check(None, "z", (0, 0), 0);
    check(Some(5), "other", (0, 0), 0);
}

#[test]
fn an_agent_is_away_then_lost_then_forgotten() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    assert_eq!(land.census(), [1, 0, 0]);
    land.cut("a");
    land.pass(LOST_AFTER - 1);
    assert_eq!((state(&land, "a"), land.census()), (Some(AgentState::Away), [0, 1, 0]));
    land.pass(1);
    assert_eq!((state(&land, "a"), land.census()), (Some(AgentState::Lost), [0, 0, 1]));
    land.connect("a", scope("a", "z", &[]), None);
    assert_eq!((state(&land, "a"), land.census()), (Some(AgentState::Connected), [1, 0, 0]));
    land.cut("a");
    land.pass(FORGET_AFTER - 1);
    assert_eq!(state(&land, "a"), Some(AgentState::Lost));
    assert_eq!(land.fleet.deadline(), Some(land.now + Duration::from_secs(1)));
    land.pass(1);
    assert_eq!((state(&land, "a"), land.census()), (None, [0, 0, 0]));
    assert_eq!(land.fleet.deadline(), None);
}

#[test]
fn a_newer_session_keeps_the_agent_connected_when_the_older_one_ends() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    let older = land.open.remove("a").unwrap();
    land.connect("a", scope("a", "z", &[]), None);
    land.sessions.close(&older.session, land.now);
    assert_eq!(state(&land, "a"), Some(AgentState::Connected));
    let report = Report::parse(v1::ReportRequest { sequence: 1, ..Default::default() }, land.now).unwrap();
    let refused = older.session.report(report, None, Revision(0), &land.fleet, land.now).unwrap_err();
    assert_eq!(refused.code(), Code::Aborted, "{refused}");
}

#[test]
fn an_agent_that_leaves_does_not_count_and_is_forgotten_at_once() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.put("x", 1, Audience::Everyone);
    land.say("a", Said { leaving: true, ..Said::default() }).unwrap();
    assert_eq!(numbers(&land.of_object("x")), [0; 7]);
    assert_eq!(state(&land, "a"), Some(AgentState::Connected));
    land.cut("a");
    assert_eq!(state(&land, "a"), None);
    land.connect("a", scope("a", "z", &[]), None);
    assert_eq!(numbers(&land.of_object("x"))[0], 1, "it thought better of it");
}

#[test]
fn beyond_the_limit_the_longest_lost_go_first_and_the_connected_stay() {
    let mut land = Land::with(Limits { agents: 3, ..Limits::default() });
    for id in ["a", "b", "c"] {
        land.connect(id, scope(id, "z", &[]), None);
    }
    land.cut("b");
    land.pass(1);
    land.cut("a");
    land.pass(LOST_AFTER);
    land.connect("d", scope("d", "z", &[]), None);
    assert_eq!(["a", "b", "c", "d"].map(|id| state(&land, id).is_some()), [true, false, true, true]);
    land.connect("e", scope("e", "z", &[]), None);
    land.connect("f", scope("f", "z", &[]), None);
    assert_eq!(land.census(), [4, 0, 0], "of those who are connected, nobody goes");
}

#[test]
fn exceptions_beyond_the_limit_are_refused_and_nothing_changes() {
    let mut land = Land::with(Limits { exceptions: 2, ..Limits::default() });
    land.connect("a", scope("a", "z", &[]), None);
    let failed = |names: &[&str]| names.iter().map(|name| exception(name, 1, Phase::Failed)).collect::<Vec<_>>();
    let kept = |land: &Land| land.fleet.agent(&agent_id("a")).unwrap().entry.lock().progress.exceptions.len();
    land.say("a", Said { exceptions: failed(&["x", "y"]), ..Said::default() }).unwrap();
    let refused = land.say("a", Said { exceptions: failed(&["z"]), ..Said::default() }).unwrap_err();
    assert_eq!((refused.code(), kept(&land)), (Code::ResourceExhausted, 2));
    // The same again, another one instead, and all of them at once.
    land.say("a", Said { exceptions: failed(&["x"]), ..Said::default() }).unwrap();
    land.say("a", Said { exceptions: failed(&["z"]), cleared: vec![key("x")], ..Said::default() })
        .unwrap();
    land.say("a", Said { exceptions: failed(&["u", "v"]), full: true, ..Said::default() })
        .unwrap();
    assert_eq!(kept(&land), 2);
}

/// An exception that takes some six kilobytes.
fn large(name: &str) -> v1::Exception {
    let waits_for = (0..16).map(|n| key(&format!("{n}-{}", "w".repeat(200))).to_wire()).collect();
    v1::Exception { message: "m".repeat(1_000), waits_for, ..exception(name, 1, Phase::Pending) }
}

#[test]
fn bytes_of_exceptions_of_one_agent_are_limited_and_it_can_always_say_less() {
    let mut land = Land::with(Limits { report_bytes: 15_000, ..Limits::default() });
    land.connect("a", scope("a", "z", &[]), None);
    let say = |land: &mut Land, names: &[&str], full| {
        let exceptions = names.iter().map(|name| large(name)).collect();
        land.say("a", Said { exceptions, full, ..Said::default() }).map(drop)
    };
    say(&mut land, &["x", "y"], true).unwrap();
    let refused = say(&mut land, &["z"], false).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("bytes of exceptions of one agent are limited to 15000"), "{refused:?}");
    let before = land.fleet.reported_bytes();
    assert!((10_000..=15_000).contains(&before), "{before}");
    // The same again, one of them, and none.
    say(&mut land, &["x", "y"], false).unwrap();
    assert_eq!(land.fleet.reported_bytes(), before);
    say(&mut land, &["y"], true).unwrap();
    assert_eq!(land.fleet.reported_bytes(), before / 2);
    land.say("a", Said { cleared: vec![key("y")], ..Said::default() }).unwrap();
    assert_eq!(land.fleet.reported_bytes(), 0);
}

#[test]
fn bytes_of_exceptions_of_all_agents_are_limited_and_those_who_are_lost_make_room() {
    let mut land = Land::with(Limits { reports_bytes: 15_000, ..Limits::default() });
    let exceptions = || vec![large("x")];
    for id in ["quiet", "a", "b", "c"] {
        land.connect(id, scope(id, "z", &[]), None);
    }
    for id in ["a", "b"] {
        land.say(id, Said { exceptions: exceptions(), ..Said::default() }).unwrap();
    }
    let refused = land.say("c", Said { exceptions: exceptions(), ..Said::default() }).unwrap_err();
    assert!(refused.message().contains("bytes of exceptions of all agents are limited to 15000"), "{refused:?}");
    land.say("c", Said::default()).unwrap();
    // Who is lost and has said nothing makes no room, and is not forgotten in vain.
    for id in ["quiet", "a"] {
        land.cut(id);
    }
    land.pass(LOST_AFTER);
    assert_eq!(state(&land, "a"), Some(AgentState::Lost));
    land.say("c", Said { exceptions: exceptions(), ..Said::default() }).unwrap();
    assert_eq!(["quiet", "a", "b", "c"].map(|id| state(&land, id).is_some()), [true, false, true, true]);
    for id in ["b", "c"] {
        land.say(id, Said { leaving: true, ..Said::default() }).unwrap();
        land.cut(id);
    }
    assert_eq!(land.fleet.reported_bytes(), 0, "who is forgotten takes no room");
}

#[test]
fn statuses_beyond_the_bytes_of_one_agent_are_refused_and_exceptions_are_not() {
    let mut land = Land::with(Limits { report_bytes: 20_000, ..Limits::default() });
    land.connect("a", scope("a", "z", &[]), None);
    let status = |name: &str, bytes| v1::ObjectStatus {
        key: Some(key(name).to_wire()),
        generation: 1,
        status: Some(prost_types::Any { type_url: "t/t.v1.S".into(), value: vec![1; bytes] }),
    };
    let mut say = |statuses: Vec<v1::ObjectStatus>, exceptions| {
        let (answer, _) = land.say("a", Said { statuses, exceptions, ..Said::default() }).unwrap();
        answer.statuses_refused
    };
    assert_eq!(say(vec![status("a", 9_000), status("b", 9_000), status("c", 9_000)], vec![large("x"), large("y")]), 1);
    // One that is replaced by what there is no room for is out of date, and goes.
    assert_eq!(say(vec![status("a", 12_000)], Vec::new()), 1);
    assert_eq!(say(vec![status("c", 9_000)], Vec::new()), 0);
}

#[test]
fn an_exception_that_makes_no_sense_is_refused_by_its_path() {
    fn check(exception: v1::Exception, path: &str) {
        let request = v1::ReportRequest { sequence: 1, exceptions: vec![exception], ..Default::default() };
        let refused = Report::parse(request, Instant::now()).unwrap_err();
        assert!(refused.message().starts_with(path), "{refused}");
    }
    let bad = v1::Key { kind: "no kind".into(), ..Default::default() };
    let fine = exception("x", 1, Phase::Pending);
    check(v1::Exception { key: None, ..fine.clone() }, "exceptions[0].key");
    check(v1::Exception { key: Some(bad.clone()), ..fine.clone() }, "exceptions[0].key");
    check(v1::Exception { waits_for: vec![bad], ..fine.clone() }, "exceptions[0].waits_for[0]");
    check(v1::Exception { waits_for: vec![key("y").to_wire(); 17], ..fine }, "exceptions[0].waits_for");
}

#[test]
fn ages_of_exceptions_go_on_after_the_report() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    land.put("x", 1, Audience::Everyone);
    let waiting = v1::Exception { age_ms: 500, retry_in_ms: 2_000, attempts: 3, ..exception("x", 1, Phase::Failed) };
    land.at(0)
        .say("a", Said { received: 1, applied: 1, exceptions: vec![waiting], ..Said::default() })
        .unwrap();
    let failure = |land: &Land| land.of_object("x").failures[0].exception.clone().unwrap();
    let found = failure(land.at(700));
    assert_eq!((found.age_ms, found.retry_in_ms, found.attempts), (1_200, 1_300, 3));
    assert_eq!(failure(land.at(5_000)).retry_in_ms, 1, "overdue is not never");
}

#[test]
fn the_same_event_is_counted_and_the_oldest_are_forgotten() {
    let now = Instant::now() + Duration::from_secs(1_000);
    let event = |reason: &str, count| {
        let wire = v1::AgentEvent { reason: reason.into(), count, first_ms: 1_000, last_ms: 10, ..Default::default() };
        Event::parse(wire, "events[0]", now).unwrap()
    };
    let mut events = Events::default();
    events.add(event("Drift", 1));
    (0..15).for_each(|n| events.add(event(&format!("Other{n}"), 1)));
    events.add(event("Drift", 2));
    let listed = events.to_wire(now + Duration::from_millis(5));
    assert_eq!(listed.len(), 16);
    assert_eq!(
        (&*listed[15].reason, listed[15].count, listed[15].first_ms, listed[15].last_ms),
        ("Drift", 2, 1_005, 15)
    );
    events.add(event("New", 1));
    let listed = events.to_wire(now);
    assert_eq!((listed.len(), &*listed[0].reason, &*listed[15].reason), (16, "Other1", "New"));
    assert!(Event::parse(v1::AgentEvent::default(), "events[0]", now).is_err());
}

#[test]
fn statuses_beyond_the_limit_are_refused_and_the_rest_is_taken() {
    let status = |name: &str, bytes: usize| ObjectStatus {
        key: key(name),
        generation: nimbus_core::Generation(1),
        status: Some(prost_types::Any { type_url: "t/t.v1.S".into(), value: vec![1; bytes] }),
    };
    let limits = StatusLimits { count: 2, bytes: 64, room: usize::MAX };
    let names = |statuses: &Statuses, after| -> Vec<(String, bool)> {
        let listed = statuses.after(after, |_| true).into_iter();
        listed.map(|status| (status.key.unwrap().name, status.status.is_some())).collect()
    };
    let mut statuses = Statuses::default();
    assert_eq!(statuses.take(vec![status("a", 1), status("b", 1), status("c", 1)], false, 1, limits), 1);
    assert_eq!(statuses.take(vec![status("a", 100)], false, 2, limits), 1, "too large");
    assert_eq!(statuses.take(vec![status("a", 1), status("b", 2)], false, 3, limits), 0);
    assert_eq!(names(&statuses, 0), [("a".into(), true), ("b".into(), true)]);
    assert_eq!(names(&statuses, 2), [("b".into(), true)], "the same again is no change");
    assert_eq!(statuses.take(vec![status("b", 2)], true, 4, limits), 0);
    assert_eq!(names(&statuses, 3), [("a".into(), false)], "one that a full report leaves out is over");
    assert_eq!(statuses.take(vec![status("c", 1)], false, 5, limits), 0, "and makes room");
}

#[test]
fn advances_say_when_a_revision_was_passed() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut advances = Advances::new(Revision(10));
    advances.advance(Revision(5), at(1));
    for n in 1..=8 {
        advances.advance(Revision(10 + 2 * n), at(n));
        advances.advance(Revision(10 + 2 * n), at(n + 100));
    }
    let passed = |advances: &Advances, revision| advances.passed(Revision(revision)).map(|at| at - start);
    let ms = |ms| Some(Duration::from_millis(ms));
    assert_eq!(
        [9, 10, 11, 12, 13, 26, 27].map(|revision| passed(&advances, revision)),
        [None, None, ms(1), ms(1), ms(2), ms(8), None]
    );
    advances.advance(Revision(30), at(9));
    assert_eq!([12, 13, 30].map(|revision| passed(&advances, revision)), [None, ms(2), ms(9)], "the oldest is gone");
}

#[test]
fn publish_times_are_found_in_whatever_order_they_came() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut times = PublishTimes::default();
    for revision in [1, 2, 4, 3, 7] {
        times.record(Revision(revision), None, at(revision));
    }
    times.record(Revision(4), None, at(99));
    assert_eq!(
        [3, 4, 5, 7].map(|revision| times.get(Revision(revision)).map(|published| published.at)),
        [Some(at(3)), Some(at(4)), None, Some(at(7))]
    );
    (8..20_000).for_each(|revision| times.record(Revision(revision), None, at(revision)));
    assert_eq!(times.get(Revision(7)), None);
    assert_eq!(times.get(Revision(19_999)).map(|published| published.at), Some(at(19_999)));
    assert_eq!(times.newest(), Some(Revision(19_999)));
}

#[test]
fn agents_of_one_shape_are_computed_once() {
    let mut land = Land::new();
    for n in 0..20 {
        let id = format!("a{n}");
        land.connect(&id, scope(&id, &format!("z{}", n % 2), &[]), None);
    }
    let (mut memo, mut computed) = (Memo::default(), 0);
    for agent in land.fleet.agents().values() {
        memo.of(&agent.entry.lock().shape, || computed += 1);
    }
    assert_eq!(computed, 2);
}

#[test]
fn percentiles_are_values_that_occurred() {
    fn check(mut samples: Vec<u32>, expected: Option<[u64; 4]>) {
        let found = latency(&mut samples).map(|of| [of.p50_ms, of.p90_ms, of.p99_ms, of.max_ms]);
        assert_eq!(found, expected);
    }
    check(vec![], None);
    check(vec![7], Some([7, 7, 7, 7]));
    check((1..=100).rev().collect(), Some([50, 90, 99, 100]));
    check(vec![3, 1, 2], Some([2, 3, 3, 3]));
}
