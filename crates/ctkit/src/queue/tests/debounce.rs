//! Changes that follow each other closely.

use crate::queue::{
    Cause, Debounce, Finish, Policy, State,
    tests::scene::{Scene, ms, policy},
};

fn scene(leading: bool) -> Scene {
    let debounce = Some(Debounce { quiet: ms(50), max_wait: ms(120), leading });
    Scene::new(Policy { debounce, ..policy() })
}

/// Adds an edit at each of these times and runs whenever something is due. Returns when that was.
fn runs(leading: bool, edits: &[u64]) -> Vec<u64> {
    let mut scene = scene(leading);
    let mut runs = Vec::new();
    for edit in edits.iter().copied().chain([10_000]) {
        while let Some(due) = scene.deadline().filter(|due| *due < edit) {
            scene.at(due).next().unwrap();
            scene.finish("a", Finish::Done);
            runs.push(due);
        }
        if edit < 10_000 {
            scene.at(edit).add("a", Cause::Edited);
        }
    }
    runs
}

#[test]
fn a_burst_makes_one_run_at_its_end_or_after_the_longest_wait() {
    let check = |edits: &[u64], expected: &[u64]| assert_eq!(runs(false, edits), expected, "{edits:?}");
    check(&[0], &[50]);
    check(&[0, 10, 20], &[70]);
    check(&[0, 60], &[50, 110]);
    check(&[0, 40, 80, 110], &[120]);
    check(&[0, 40, 80, 119, 130], &[120, 180]);
}

#[test]
fn a_leading_run_comes_at_once_and_the_rest_of_the_burst_makes_another() {
    let check = |edits: &[u64], expected: &[u64]| assert_eq!(runs(true, edits), expected, "{edits:?}");
    check(&[0], &[0]);
    check(&[0, 10, 20], &[0, 70]);
    check(&[0, 49, 90], &[0, 140]);
    check(&[0, 51], &[0, 51]);
    check(&[0, 40, 80, 120, 159, 170], &[0, 160, 220]);
}

#[test]
fn what_has_become_due_stays_due_while_there_is_no_room() {
    let mut scene = scene(false);
    scene.add("a", Cause::Edited);
    scene.at(60).add("a", Cause::Edited);
    let job = scene.next().unwrap();
    assert_eq!(job.waited, ms(10));
}

#[test]
fn a_person_does_not_wait_for_the_end_of_a_burst() {
    let mut scene = scene(false);
    scene.add("a", Cause::Edited);
    scene.at(5).add("a", Cause::Manual);
    assert!(scene.next().is_some());
    scene.finish("a", Finish::Done);
    assert!(scene.queue.is_empty());
}

#[test]
fn a_key_that_led_is_remembered_until_its_burst_is_over() {
    let mut scene = scene(true);
    scene.run("a", Cause::Edited, Finish::Done);
    assert_eq!(scene.view("a").state, State::Quiet { until: scene.start + ms(50) });
    assert_eq!(scene.deadline(), None);
    assert!(scene.queue.is_idle());
    assert_eq!(scene.at(50).next(), None);
    assert!(scene.queue.is_empty());
}
