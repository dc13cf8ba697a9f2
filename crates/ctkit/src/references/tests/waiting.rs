//! Objects that wait, and what for.

use std::time::Duration;

use nimbus_core::Revision;
use tokio::time::Instant;

use crate::references::{
    Changed, References,
    tests::{key, refs},
};

/// A clock of our own.
struct Clock(Instant);

impl Clock {
    fn at(&self, seconds: u64) -> Instant {
        self.0 + Duration::from_secs(seconds)
    }
}

fn clock() -> Clock {
    Clock(Instant::now())
}

fn names(keys: &[nimbus_core::ObjectKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn wait(references: &mut References, referrer: &str, awaited: &[&str], now: Instant) {
    let _ = references.wait_for(&key(referrer), [], awaited.iter().map(|text| key(text)), now);
}

#[test]
fn who_waits_is_satisfied_when_everything_is_there() {
    let (mut references, clock) = (References::default(), clock());
    wait(&mut references, "P/a", &["Set/x", "Set/y"], clock.at(0));
    assert!(!references.satisfied(&key("P/a"), |it| *it == key("Set/x")));
    assert!(references.satisfied(&key("P/a"), |_| true));
    assert!(references.satisfied(&key("P/other"), |_| false), "who waits for nothing is satisfied");
    let _ = references.declare(&key("P/a"), refs("Set/x"), clock.at(1));
    assert!(references.satisfied(&key("P/a"), |_| false), "a declaration ends the wait");
}

#[test]
fn what_is_awaited_is_looked_at() {
    let (mut references, clock) = (References::default(), clock());
    let diff = references.wait_for(&key("P/a"), refs("Net/x Set/x"), [key("Set/x"), key("Set/y")], clock.at(0));
    assert_eq!(diff.added, refs("Net/x Set/x Set/y"));
    let set = key("Set/y");
    let change = Changed { key: &set, before: None, after: Some(&Default::default()), at: Revision(1) };
    assert_eq!(names(&references.changed(&change, clock.at(1)).referrers), "P/a");
}

#[test]
fn an_explanation_names_what_is_missing_and_since_when() {
    let (mut references, clock) = (References::default(), clock());
    let _ = references.declare(&key("P/b"), refs("Set/y"), clock.at(1));
    let _ = references.wait_for(&key("P/a"), refs("Net/x Set/y"), [key("Set/x")], clock.at(2));
    // It waits on, and for something else, too.
    let _ = references.wait_for(&key("P/a"), refs("Net/x Set/y"), [key("Set/x"), key("Set/z")], clock.at(5));

    let explanation = references.explain(&key("P/a"), |it| *it == key("Net/x"));
    assert_eq!(explanation.refers_to, refs("Net/x Set/x Set/y Set/z"));
    let missing = explanation.missing.iter().map(|it| (it.key.clone(), it.since, it.is_awaited));
    let expected =
        [(key("Set/x"), clock.at(2), true), (key("Set/y"), clock.at(1), false), (key("Set/z"), clock.at(5), true)];
    assert_eq!(missing.collect::<Vec<_>>(), expected);
    assert_eq!(explanation.waits_since, Some(clock.at(2)));

    let explanation = references.explain(&key("P/a"), |it| *it != key("Set/z"));
    assert_eq!(explanation.waits_since, Some(clock.at(5)), "what has come holds nothing up");
    assert_eq!(names(&references.explain(&key("Set/y"), |_| true).referrers), "P/a P/b");
}

#[test]
fn the_chain_leads_to_what_holds_everything_up() {
    let (mut references, clock) = (References::default(), clock());
    wait(&mut references, "P/a", &["P/b", "P/c"], clock.at(0));
    wait(&mut references, "P/b", &["P/d"], clock.at(0));
    wait(&mut references, "P/c", &["P/a"], clock.at(0));
    wait(&mut references, "P/d", &["Set/x"], clock.at(0));
    let chain = |from, ready: &[&str]| {
        let explanation = references.explain(&key(from), |it| ready.iter().any(|text| key(text) == *it));
        names(&explanation.blocked_by)
    };
    assert_eq!(chain("P/a", &[]), "P/b P/d Set/x");
    assert_eq!(chain("P/d", &[]), "Set/x");
    assert_eq!(chain("P/d", &["Set/x"]), "");
    assert_eq!(chain("P/other", &[]), "");
    assert_eq!(chain("P/a", &["P/b"]), "P/c P/a P/c", "they wait for each other");
}

/// F81: what never came is reported until somebody stops looking at it.
#[test]
fn what_never_came_is_reported_with_those_who_look_at_it() {
    let (mut references, clock) = (References::default(), clock());
    let _ = references.declare(&key("P/a"), refs("Set/x Set/y"), clock.at(3));
    let _ = references.declare(&key("P/b"), refs("Set/x Set/z Net"), clock.at(4));
    // It was there, and is gone since.
    let set = key("Set/z");
    let change = Changed { key: &set, before: Some(&Default::default()), after: None, at: Revision(1) };
    let _ = references.changed(&change, clock.at(9));

    let show = |references: &References| {
        let dangling = references.dangling(|it| *it == key("Set/y"));
        let show =
            |it: &crate::references::Dangling| (it.referent.to_string(), names(&it.referrers), it.since - clock.at(0));
        dangling.iter().map(show).collect::<Vec<_>>()
    };
    let line = |referent: &str, referrers: &str, seconds| {
        (referent.to_owned(), referrers.to_owned(), Duration::from_secs(seconds))
    };
    assert_eq!(show(&references), [line("Set/x", "P/a P/b", 3), line("Set/z", "P/b", 9)]);
    let _ = references.forget(&key("P/b"));
    assert_eq!(show(&references), [line("Set/x", "P/a", 3)]);
}
