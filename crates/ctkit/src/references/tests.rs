//! References that come and go, and what holds objects up.

mod model;
mod waiting;

use std::collections::BTreeMap;

use nimbus_core::{Kind, Labels, ObjectKey, Revision, Selector};
use tokio::time::Instant;

use crate::references::{Changed, Diff, Ref, References, Wakes};

/// `Kind/name`.
pub(crate) fn key(text: &str) -> ObjectKey {
    let (kind, name) = text.split_once('/').unwrap();
    ObjectKey::new(Kind::new(kind).unwrap(), "", name).unwrap()
}

/// `Kind/name` is an object, `Kind` a whole kind, `Kind?zone=a` a part of it.
pub(crate) fn reference(text: &str) -> Ref {
    match (text.contains('/'), text.split_once('?')) {
        (true, _) => Ref::Object(key(text)),
        (false, Some((kind, selector))) => Ref::Matching(Kind::new(kind).unwrap(), Selector::parse(selector).unwrap()),
        (false, None) => Ref::Matching(Kind::new(text).unwrap(), Selector::default()),
    }
}

pub(crate) fn refs(text: &str) -> Vec<Ref> {
    text.split_whitespace().map(reference).collect()
}

pub(crate) fn labels(text: &str) -> Labels {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    Labels::new(&pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>()).unwrap()
}

/// Those who are woken by a change that leaves labels alone.
fn woken(references: &mut References, text: &str) -> String {
    woken_by(references, text, Some(""), Some(""))
}

fn woken_by(references: &mut References, text: &str, before: Option<&str>, after: Option<&str>) -> String {
    let (key, before, after) = (key(text), before.map(labels), after.map(labels));
    let change = Changed { key: &key, before: before.as_ref(), after: after.as_ref(), at: Revision(1) };
    let woken = references.changed(&change, Instant::now()).referrers;
    woken.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn declare(references: &mut References, referrer: &str, text: &str) -> Diff {
    references.declare(&key(referrer), refs(text), Instant::now())
}

/// H18: as many referents as there are, of one kind or several.
#[test]
fn a_change_of_any_of_several_referents_wakes_the_referrer() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "Set/x Set/y Net/x");
    let _ = declare(&mut references, "P/b", "Set/x");
    assert_eq!(woken(&mut references, "Set/x"), "P/a P/b");
    assert_eq!(woken(&mut references, "Set/y"), "P/a");
    assert_eq!(woken(&mut references, "Net/x"), "P/a");
    assert_eq!(woken(&mut references, "Net/y"), "");
}

/// H19: what is left out is removed, and it is removed once.
#[test]
fn a_reference_that_is_left_out_is_removed_and_wakes_nobody_any_more() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "Set/x Set/y");
    let diff = declare(&mut references, "P/a", "Set/z Set/y");
    assert_eq!((diff.added, diff.removed), (refs("Set/z"), refs("Set/x")));
    assert_eq!(woken(&mut references, "Set/x"), "");
    assert_eq!(declare(&mut references, "P/a", "Set/y Set/z"), Diff::default(), "the same again is no change");
}

#[test]
fn a_referent_that_is_named_twice_is_one_reference() {
    let mut references = References::default();
    let diff = declare(&mut references, "P/a", "Set/x Set/x");
    assert_eq!(diff.added, refs("Set/x"));
    assert_eq!(references.kinds().map(|(_, count)| count).collect::<Vec<_>>(), [1]);
    let diff = declare(&mut references, "P/a", "");
    assert_eq!((diff.removed.len(), diff.kinds_stopped.len()), (1, 1));
}

/// H20: a wake-up is a name to put into a queue; nothing is called from here, so nothing can be lost here.
#[test]
fn a_referrer_that_refers_to_a_change_in_many_ways_is_woken_once() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "Set/x Set Set?zone=a Set?!b");
    assert_eq!(woken_by(&mut references, "Set/x", Some("zone=a"), Some("zone=a")), "P/a");
}

#[test]
fn an_object_that_looks_at_itself_is_not_woken_by_what_it_does() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "P/a P");
    let _ = declare(&mut references, "P/b", "P/a");
    assert_eq!(woken(&mut references, "P/a"), "P/b");
    assert_eq!(woken(&mut references, "P/b"), "P/a");
    assert_eq!(references.forget(&key("P/a")).removed.len(), 2);
}

#[test]
fn a_selector_wakes_for_what_matches_and_for_what_ceases_to_match() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "Set?zone=a");
    let mut check = |before, after, expected| {
        assert_eq!(woken_by(&mut references, "Set/x", before, after), expected, "{before:?} to {after:?}");
    };
    check(None, Some("zone=a"), "P/a");
    check(Some("zone=a"), Some("zone=a x=y"), "P/a");
    check(Some("zone=a"), Some("zone=b"), "P/a");
    check(Some("zone=b"), Some("zone=a"), "P/a");
    check(Some("zone=a"), None, "P/a");
    check(Some("zone=b"), Some("zone=c"), "");
    check(None, Some(""), "");
    check(Some("zone=b"), None, "");
}

/// H21: a watch of a kind begins with its first reference and ends with its last, and not in between.
#[test]
fn a_kind_starts_with_its_first_reference_and_stops_with_its_last() {
    let mut references = References::default();
    let mut check = |referrer, text, started: &str, stopped: &str| {
        let diff = declare(&mut references, referrer, text);
        let kinds = |kinds: &[Kind]| kinds.iter().map(Kind::as_str).collect::<Vec<_>>().join(" ");
        let found = (kinds(&diff.kinds_started), kinds(&diff.kinds_stopped));
        assert_eq!(found, (started.to_owned(), stopped.to_owned()), "{referrer}: {text}");
    };
    check("P/a", "Set/x Net/x", "Net Set", "");
    check("P/b", "Set/x Set", "", "");
    check("P/a", "Net/y", "", "");
    check("P/b", "Set?zone=a", "", "");
    check("P/b", "Net/x", "", "Set");
    check("P/a", "Set/x", "Set", "");
    check("P/b", "", "", "Net");
    check("P/a", "", "", "Set");
    check("P/a", "", "", "");
}

#[test]
fn what_is_forgotten_leaves_nothing_behind() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "Set/x Net Net?a=b");
    let diff = references.forget(&key("P/a"));
    assert_eq!((diff.removed.len(), diff.kinds_stopped.len()), (3, 2));
    assert_eq!(references.forget(&key("P/a")), Diff::default());
    assert_eq!(references.kinds().count(), 0);
    assert!(references.referrers.is_empty() && references.dangling(|_| false).is_empty());
}

/// H22: a referrer is woken at the revision of the change, so that it can wait until its cache is that new.
#[test]
fn a_referrer_is_woken_at_the_revision_of_the_change() {
    let mut references = References::default();
    let _ = declare(&mut references, "P/a", "Set/x");
    let (set, none) = (key("Set/x"), Labels::default());
    let change = Changed { key: &set, before: None, after: Some(&none), at: Revision(10) };
    let wakes = references.changed(&change, Instant::now());
    assert_eq!(wakes, Wakes { at: Revision(10), referrers: vec![key("P/a")] });
}

/// H22: a referent that changes between the read and the declaration woke nobody, because nobody looked at it yet. So
/// what a reaction reads is added before it is read, and the declaration at its end takes nothing away that it read.
#[test]
fn what_is_added_before_it_is_read_wakes_from_then_on() {
    let mut references = References::default();
    let now = Instant::now();
    let started = references.add(&key("P/a"), [reference("Set/x")], now).kinds_started;
    assert_eq!(started.len(), 1);
    let (set, none) = (key("Set/x"), Labels::default());
    let change = Changed { key: &set, before: Some(&none), after: Some(&none), at: Revision(10) };
    assert_eq!(references.changed(&change, now).referrers, vec![key("P/a")]);
    let _ = references.add(&key("P/a"), [reference("Set/y")], now);
    let diff = declare(&mut references, "P/a", "Set/x");
    assert_eq!(diff.added, vec![]);
    assert_eq!(diff.removed, vec![reference("Set/y")]);
}
