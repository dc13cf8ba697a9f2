use nimbus_core::Revision;

use super::*;
use crate::fixtures::{commit, key, kind, position, put, record, record_of, store};

fn intake() -> Intake {
    Intake::new(kind())
}

fn take(intake: &mut Intake, event: Event) -> Result<Option<News>, Broken> {
    intake.take(event)
}

/// Takes a list; says what is told of in the end, after its part if that is the first.
fn list(
    intake: &mut Intake,
    records: &[Arc<Record>],
    at: Position,
) -> Result<(Vec<ObjectKey>, Option<WatchEpoch>), Broken> {
    let is_first = intake.position.is_none() && intake.copy.objects.len() == 0;
    let part = take(intake, Event::Listing(records.to_vec()))?.map(|news| news.what);
    assert_eq!(part.is_some(), is_first && !records.is_empty(), "any other list counts when it is whole");
    let mut told: Vec<_> = part.into_iter().flat_map(keys).collect();
    let news = take(intake, Event::Listed(at))?.unwrap();
    let listed = listed(&news);
    told.extend(keys(news.what));
    Ok((told, listed))
}

fn change(intake: &mut Intake, changes: Vec<Change>, at: Position) -> Result<Vec<ObjectKey>, Broken> {
    Ok(take(intake, Event::Changes(changes, at))?.map(|news| keys(news.what)).unwrap_or_default())
}

fn keys(what: What) -> Vec<ObjectKey> {
    match what {
        What::Part { records, .. } => records.iter().map(|record| record.key().clone()).collect(),
        What::Keys { keys, .. } => keys,
    }
}

fn listed(news: &News) -> Option<WatchEpoch> {
    match news.what {
        What::Part { .. } => None,
        What::Keys { listed, .. } => listed,
    }
}

fn names(intake: &Intake) -> Vec<String> {
    intake
        .copy
        .objects
        .iter()
        .map(|record| format!("{}@{}", record.key().name(), record.revision()))
        .collect()
}

#[test]
fn a_relist_sweeps_what_it_does_not_name_and_tells_only_of_differences() {
    let mut intake = intake();
    let first = list(&mut intake, &[record("a", 1), record("b", 2), record("c", 3)], position(1, 3)).unwrap();
    assert_eq!(first.0, [key("a"), key("b"), key("c")]);
    let second = list(&mut intake, &[record("a", 1), record("c", 5), record("d", 4)], position(1, 5)).unwrap();
    assert_eq!(second.0, [key("b"), key("c"), key("d")]);
    assert_eq!(names(&intake), ["a@1", "c@5", "d@4"]);
}

/// H33: sweeps used to know a list by the second in which it was read. Two lists within one second, or a clock that
/// was set back, then swept objects that lived, or kept those that were gone.
#[test]
fn lists_are_told_apart_by_a_counter_and_not_by_a_clock() {
    let mut intake = intake();
    for round in 1..=5 {
        // Without any time between them; each has other objects than the one before.
        let name = format!("only-{round}");
        let news = list(&mut intake, &[record(&name, round)], position(1, round)).unwrap();
        assert_eq!(news.1, Some(WatchEpoch(round)));
        assert_eq!(names(&intake), [format!("{name}@{round}")]);
    }
}

#[test]
fn a_list_that_breaks_off_changes_nothing() {
    let mut intake = intake();
    list(&mut intake, &[record("a", 1)], position(1, 1)).unwrap();
    assert!(take(&mut intake, Event::Listing(vec![record("b", 2)])).unwrap().is_none());
    assert_eq!(intake.begin(), Some(position(1, 1)));
    assert_eq!(names(&intake), ["a@1"]);
    list(&mut intake, &[record("c", 3)], position(1, 3)).unwrap();
    assert_eq!(names(&intake), ["c@3"], "nothing is left of the broken list");
}

#[test]
fn the_first_list_is_shown_as_it_is_read_and_what_a_broken_one_had_is_compared() {
    let mut intake = intake();
    let part = |records: &[Arc<Record>]| Event::Listing(records.to_vec());
    let shown = |intake: &mut Intake, event| take(intake, event).unwrap().map(|news| news.what);
    let first = shown(&mut intake, part(&[record("a", 1), record("b", 2)]));
    assert!(matches!(first, Some(What::Part { replaces: false, .. })));
    let second = shown(&mut intake, part(&[record("c", 3), record("b", 4)]));
    assert!(matches!(second, Some(What::Part { replaces: true, .. })), "b is there in place of an earlier one");
    assert_eq!(names(&intake), ["a@1", "b@4", "c@3"]);
    // It breaks off. What was shown stays until there is a whole list, and then only what differs is told.
    assert_eq!(intake.begin(), None);
    assert!(shown(&mut intake, part(&[record("c", 3)])).is_none());
    assert_eq!(names(&intake), ["a@1", "b@4", "c@3"]);
    assert!(shown(&mut intake, part(&[record("d", 5)])).is_none());
    let news = take(&mut intake, Event::Listed(position(1, 5))).unwrap().unwrap();
    assert_eq!((listed(&news), keys(news.what)), (Some(WatchEpoch(1)), vec![key("a"), key("b"), key("d")]));
    assert_eq!(names(&intake), ["c@3", "d@5"]);
}

/// H02: a delete that overtakes an add, or the reverse, must not bring anything back.
#[test]
fn nothing_older_replaces_something_newer() {
    let mut intake = intake();
    list(&mut intake, &[record("a", 5), record("b", 2)], position(1, 5)).unwrap();
    assert!(change(&mut intake, vec![Change::Put(record("a", 4))], position(1, 6)).unwrap().is_empty());
    let gone = Change::Removed(key("b"), Revision(7));
    assert_eq!(change(&mut intake, vec![gone], position(1, 7)).unwrap(), [key("b")]);
    // It ended at 7: whatever was said of it before comes too late.
    assert!(change(&mut intake, vec![Change::Put(record("b", 3))], position(1, 8)).unwrap().is_empty());
    assert!(change(&mut intake, vec![Change::Put(record("b", 3))], position(1, 3)).unwrap().is_empty());
    let late = Change::Removed(key("a"), Revision(4));
    assert!(change(&mut intake, vec![late], position(1, 9)).unwrap().is_empty());
    assert_eq!(names(&intake), ["a@5"]);
}

#[test]
fn an_object_that_a_list_has_newer_than_its_position_does_not_go_back() {
    let mut intake = intake();
    list(&mut intake, &[record("a", 12)], position(1, 10)).unwrap();
    let changes = vec![Change::Put(record("a", 11))];
    assert!(change(&mut intake, changes, position(1, 11)).unwrap().is_empty());
    assert_eq!(names(&intake), ["a@12"]);
}

#[test]
fn a_list_that_is_older_than_what_was_seen_is_not_believed() {
    let mut intake = intake();
    list(&mut intake, &[record("a", 9)], position(1, 9)).unwrap();
    assert_eq!(list(&mut intake, &[record("b", 4)], position(1, 8)).unwrap_err(), Broken::Stale);
    assert_eq!(names(&intake), ["a@9"]);
    assert_eq!(intake.begin(), Some(position(1, 9)));
}

#[test]
fn changes_that_follow_no_list_make_it_begin_with_one() {
    let mut intake = intake();
    let put = |revision| vec![Change::Put(record("a", revision))];
    assert_eq!(change(&mut intake, put(1), position(1, 1)), Err(Broken::OutOfTurn));
    assert_eq!(intake.begin(), None);
    list(&mut intake, &[], position(1, 1)).unwrap();
    assert_eq!(change(&mut intake, put(2), position(2, 2)), Err(Broken::OutOfTurn), "another epoch");
    assert_eq!(intake.begin(), None, "its position is of no use");
    assert!(take(&mut intake, Event::Listing(Vec::new())).unwrap().is_none());
    assert_eq!(change(&mut intake, put(3), position(1, 3)), Err(Broken::OutOfTurn), "within a list");
}

#[test]
fn in_another_epoch_only_contents_are_compared() {
    let mut intake = intake();
    list(&mut intake, &[record("a", 50), record("b", 60)], position(1, 60)).unwrap();
    let news = list(&mut intake, &[record("a", 1), record_of("b", 2, "other")], position(2, 2)).unwrap();
    assert_eq!(news.0, [key("b")]);
    assert_eq!(names(&intake), ["a@1", "b@2"]);
}

#[test]
fn a_position_without_changes_is_remembered() {
    let mut intake = intake();
    list(&mut intake, &[], position(1, 1)).unwrap();
    assert!(change(&mut intake, Vec::new(), position(1, 9)).unwrap().is_empty());
    assert_eq!(intake.begin(), Some(position(1, 9)));
}

/// A subscriber that read a collection as it was by then, and not as it was when it was told, saw an object early. It
/// ended before the next look, which found nothing before and nothing after, and so the subscriber kept it for ever.
#[test]
fn what_is_readable_is_what_was_looked_at_and_nothing_newer() {
    let store = store(1, 100);
    let mut intake = intake();
    let said = Event::Listed(position(1, 0));
    let news = intake.look(&said, &store.snapshot()).unwrap();
    assert_eq!(listed(&news), Some(WatchEpoch(1)));
    commit(&store, [put(&key("a"), b"1")]);
    assert!(news.copy.objects.get(&key("a")).is_none(), "it has not been told yet");
    commit(&store, [nimbus_store::Op::Delete(key("a"))]);
    let said = Event::Changes(Vec::new(), position(1, 2));
    assert!(keys(intake.look(&said, &store.snapshot()).unwrap().what).is_empty());
}

#[test]
fn a_look_after_the_ends_were_forgotten_compares_everything() {
    let store = store(1, 100);
    let mut intake = intake();
    commit(&store, [put(&key("a"), b"1"), put(&key("b"), b"1")]);
    intake.look(&Event::Listed(position(1, 1)), &store.snapshot()).unwrap();
    commit(&store, [nimbus_store::Op::Delete(key("a")), put(&key("c"), b"1")]);
    store.bus().store().trim(Revision(2));
    let news = intake.look(&Event::Changes(Vec::new(), position(1, 2)), &store.snapshot()).unwrap();
    assert_eq!((listed(&news), keys(news.what)), (Some(WatchEpoch(2)), vec![key("a"), key("c")]));
}
