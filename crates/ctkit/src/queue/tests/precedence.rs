//! What wins over what: the table in the documentation, line by line.

use crate::queue::{
    Cause, Causes, Debounce, Finish, Policy, State,
    tests::{
        precedence::Then::{Forgiven, Runs, Stays},
        scene::{Scene, failed, ms, panicked, policy, refused},
    },
};

/// What becomes of a key that has just run, and to which something has just happened.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    /// It runs at this time, as if it had never failed.
    Forgiven(u64),
    /// It runs at this time, and what it has failed still counts.
    Runs(u64),
    /// It does not run by itself.
    Stays,
}

type Row = [Then; 6];

const ROWS: [(Cause, Row); 8] = [
    (Cause::Edited, [Forgiven(0), Forgiven(0), Forgiven(0), Forgiven(0), Forgiven(0), Forgiven(0)]),
    (Cause::Manual, [Runs(0), Runs(0), Runs(0), Runs(0), Runs(0), Runs(0)]),
    (Cause::Referent, [Runs(0), Runs(0), Runs(0), Stays, Runs(1_000), Stays]),
    (Cause::Touched, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Status, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Boot, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Resync, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Requeued, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
];

/// The same with a debounce of 40 ms.
const DEBOUNCED: [(Cause, Row); 8] = [
    (Cause::Edited, [Forgiven(40), Forgiven(40), Forgiven(40), Forgiven(40), Forgiven(40), Forgiven(40)]),
    (Cause::Manual, [Runs(0), Runs(0), Runs(0), Runs(0), Runs(0), Runs(0)]),
    (Cause::Referent, [Runs(40), Runs(40), Runs(40), Stays, Runs(1_000), Stays]),
    (Cause::Touched, [Runs(40), Runs(40), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Status, [Runs(40), Runs(40), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Boot, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Resync, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
    (Cause::Requeued, [Runs(0), Runs(0), Runs(100), Stays, Runs(1_000), Stays]),
];

/// The states of the columns, each with the policy and the end of the run that lead to it.
fn columns(policy: &Policy) -> [(Policy, Finish); 6] {
    let poisoned = Policy { poison_after: 1, ..policy.clone() };
    [
        (policy.clone(), Finish::RequeueAfter(ms(500))),
        (policy.clone(), Finish::Waiting(None)),
        (policy.clone(), failed()),
        (policy.clone(), refused()),
        (policy.clone(), panicked()),
        (poisoned, panicked()),
    ]
}

fn check(scene: &mut Scene, what: &str, failures: u32, expected: Then) {
    let then = match scene.deadline() {
        None => Stays,
        Some(deadline) => {
            let job = scene.at(deadline).next().expect("there is a job at the deadline");
            if job.attempt == 0 && matches!(expected, Forgiven(_)) { Forgiven(deadline) } else { Runs(deadline) }
        }
    };
    assert_eq!(then, expected, "{what}");
    if then != Stays && !matches!(then, Forgiven(_)) {
        assert_eq!(scene.view("a").attempts, failures, "{what}");
    }
}

fn failures(finish: &Finish) -> u32 {
    u32::from(!matches!(finish, Finish::RequeueAfter(_) | Finish::Waiting(_)))
}

fn check_rows(policy: &Policy, rows: [(Cause, Row); 8]) {
    for (cause, row) in rows {
        for ((policy, finish), expected) in columns(policy).into_iter().zip(row) {
            let what = format!("{cause:?} after {finish:?}");
            let mut scene = Scene::new(policy.clone());
            scene.run("a", Cause::Boot, finish.clone());
            scene.add("a", cause);
            assert!(scene.view("a").causes.contains(cause), "{what}");
            check(&mut scene, &what, failures(&finish), expected);
        }
    }
}

#[test]
fn what_happens_after_a_run_wins_as_the_table_says() {
    check_rows(&policy(), ROWS);
}

#[test]
fn what_happens_after_a_run_wins_as_the_table_says_with_a_debounce() {
    let debounce = Some(Debounce { quiet: ms(40), max_wait: ms(400), leading: false });
    check_rows(&Policy { debounce, ..policy() }, DEBOUNCED);
}

#[test]
fn what_happens_during_a_run_that_fails_wins_in_the_same_way() {
    for (cause, row) in ROWS {
        for ((policy, finish), expected) in columns(&policy()).into_iter().zip(row) {
            let mut scene = Scene::new(policy);
            scene.add("a", Cause::Boot);
            scene.next().unwrap();
            scene.add("a", cause);
            scene.finish("a", finish.clone());
            check(&mut scene, &format!("{cause:?} during {finish:?}"), failures(&finish), expected);
        }
    }
}

#[test]
fn a_delayed_add_keeps_the_earliest_time_and_shortens_no_failure() {
    let expected = [Runs(30), Runs(30), Runs(100), Stays, Runs(1_000), Stays];
    for ((policy, finish), expected) in columns(&policy()).into_iter().zip(expected) {
        let mut scene = Scene::new(policy);
        scene.run("a", Cause::Boot, finish.clone());
        scene.add_after("a", 30);
        check(&mut scene, &format!("add_after after {finish:?}"), failures(&finish), expected);
    }
}

#[test]
fn a_referent_starts_the_backoff_from_its_beginning_but_counts_on() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Edited, failed());
    scene.at(100).next().unwrap();
    assert_eq!(scene.finish("a", failed()), Some(State::Retrying { until: scene.start + ms(300) }));
    scene.at(150).add("a", Cause::Referent);
    assert_eq!(scene.next().unwrap().attempt, 2);
    assert_eq!(scene.finish("a", failed()), Some(State::Retrying { until: scene.start + ms(250) }));
}

#[test]
fn a_debounced_referent_never_makes_a_retry_later() {
    let debounce = Some(Debounce { quiet: ms(400), max_wait: ms(4_000), leading: false });
    let mut scene = Scene::new(Policy { debounce, ..policy() });
    scene.run("a", Cause::Boot, failed());
    scene.add("a", Cause::Referent);
    assert_eq!(scene.deadline(), Some(100));
}

#[test]
fn a_job_says_all_causes_since_the_last_success() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Status, failed());
    scene.add("a", Cause::Touched);
    let causes = scene.at(100).next().unwrap().causes;
    assert_eq!(causes, Causes::from_iter([Cause::Status, Cause::Retried, Cause::Touched]));
    scene.add("a", Cause::Edited);
    scene.finish("a", Finish::Done);
    assert_eq!(scene.next().unwrap().causes, Cause::Edited.into());
}
