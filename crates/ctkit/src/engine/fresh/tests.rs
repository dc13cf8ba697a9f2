//! What was read a moment ago is the newest, or is not used.

use super::Fresh;
use crate::fixtures::{key, record};

fn names(fresh: &mut Fresh, keys: &[&str], edits: u64) -> Vec<Option<u64>> {
    let take = |name: &&str| fresh.take(&key(name), edits).map(|record| record.revision().0);
    keys.iter().map(take).collect()
}

#[test]
fn objects_are_there_in_their_order_and_once() {
    let mut fresh = Fresh::default();
    fresh.extend([record("a", 1), record("b", 2)], 0);
    fresh.extend([record("c", 3)], 0);
    assert_eq!(names(&mut fresh, &["other", "a", "a", "c", "b"], 0), [None, Some(1), None, Some(3), None]);
}

#[test]
fn what_nobody_asks_for_is_forgotten() {
    let mut fresh = Fresh::default();
    for at in 0..10 {
        fresh.extend((0..1000).map(|of| record(&format!("n{at}-{of}"), 1)), 0);
    }
    assert!(fresh.records.len() <= 6000, "{}", fresh.records.len());
}

#[test]
fn nothing_is_the_newest_any_more_after_an_edit() {
    let mut fresh = Fresh::default();
    fresh.extend([record("a", 1), record("b", 2)], 0);
    assert_eq!(names(&mut fresh, &["a", "a"], 1), [None, None]);
    assert_eq!(names(&mut fresh, &["b"], 0), [None], "it is not kept either");
    fresh.extend([record("a", 1)], 1);
    fresh.extend([record("a", 5)], 2);
    assert_eq!(names(&mut fresh, &["a"], 2), [Some(5)]);
}
