//! Holes that controllers before this one fell into, each with its story.

use nimbus_core::Failure;

use crate::queue::{
    Cause, Debounce, Finish, Policy, State,
    tests::scene::{Scene, failed, ms, panicked, policy, refused},
};

/// H01. A reactor that failed was logged and forgotten: the object stayed half done until somebody edited it. Here it
/// stays in the queue, and each run knows how many came before it.
#[test]
fn a_reactor_that_fails_seven_times_and_then_succeeds_is_run_eight_times() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    for attempt in 0..7 {
        let job = scene.next().expect("it is due");
        assert_eq!(job.attempt, attempt);
        scene.finish("a", failed());
        let wait = 100 << attempt;
        assert_eq!(scene.view("a").state, State::Retrying { until: scene.now + ms(wait) });
        assert_eq!(scene.next(), None);
        scene.now += ms(wait);
    }
    assert_eq!(scene.next().expect("it is due").attempt, 7);
    scene.finish("a", Finish::Done);
    assert!(scene.queue.is_empty());
    scene.add("a", Cause::Edited);
    assert_eq!(scene.next().expect("it is due").attempt, 0);
}

/// H07. Each edit began the debounce anew, so that an object that was edited all the time was never looked at.
#[test]
fn an_object_that_is_edited_all_the_time_runs_all_the_same() {
    let debounce = Some(Debounce { quiet: ms(100), max_wait: ms(1_000), leading: false });
    let mut scene = Scene::new(Policy { debounce, ..policy() });
    let mut runs = 0;
    for millis in (0..10_000).step_by(10) {
        scene.at(millis).add("a", Cause::Edited);
        if scene.next().is_some() {
            runs += 1;
            scene.finish("a", Finish::Done);
        }
    }
    // From the first edit that a run has not seen it takes a second, and the next edit comes after 10 ms.
    assert_eq!(runs, 9);
}

/// H08. Delays of different length for one key were different entries: the late one brought an old value back, or a
/// short one was swallowed by a long one.
#[test]
fn whatever_the_mix_of_delays_a_key_runs_once_at_the_earliest_of_them() {
    let mut scene = Scene::new(policy());
    for delay in [500, 200, 900, 300] {
        scene.add_after("a", delay);
    }
    assert_eq!(scene.queue.len(), 1);
    assert_eq!(scene.deadline(), Some(200));
    assert!(scene.at(200).next().is_some());
    scene.add_after("a", 700);
    scene.add_after("a", 600);
    scene.finish("a", Finish::RequeueAfter(ms(650)));
    assert_eq!(scene.deadline(), Some(800));
    assert!(scene.at(800).next().is_some());
    scene.finish("a", Finish::Done);
    assert!(scene.queue.is_empty());
}

/// H08. An exception between taking an item and finishing it lost the item.
#[test]
fn a_key_whose_worker_died_is_handed_out_again() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    let lost = scene.next().unwrap();
    scene.queue.abandon(lost.lane, &lost.key, scene.now).unwrap();
    assert_eq!(scene.next(), Some(lost));
}

/// H09. An unreachable server made an object FAILED, and FAILED objects were not looked at any more.
#[test]
fn a_failure_that_is_not_permanent_is_tried_for_ever() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    for attempt in 0..1_000 {
        assert_eq!(scene.next().unwrap().attempt, attempt);
        scene.finish("a", failed());
        scene.now = scene.queue.deadline().expect("it is tried again");
    }
}

/// H09. And what is permanent is so for one generation only.
#[test]
fn a_permanent_failure_ends_with_the_next_edit() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Edited, Failure::new("no such zone").permanent().into());
    assert_eq!((scene.view("a").state, scene.deadline()), (State::Failed, None));
    scene.add("a", Cause::Edited);
    assert_eq!(scene.next().unwrap().attempt, 0);
    scene.add("a", Cause::Edited);
    assert_eq!(scene.finish("a", refused()), Some(State::Ready), "what failed was an older version");
}

/// H15. One object made the handler panic; it was handed out again at once, for ever, and nothing else got its turn.
#[test]
fn a_key_that_panics_is_slowed_down_then_parked_and_holds_up_nobody() {
    let mut scene = Scene::new(Policy { concurrency: 1, ..policy() });
    scene.run("bad", Cause::Edited, panicked());
    assert_eq!(scene.view("bad").state, State::Quarantined { until: scene.start + ms(1_000) });
    scene.run("good", Cause::Edited, Finish::Done);
    scene.at(1_000).next().unwrap();
    assert_eq!(scene.finish("bad", panicked()), Some(State::Quarantined { until: scene.start + ms(3_000) }));
    scene.at(3_000).next().unwrap();
    assert_eq!(scene.finish("bad", panicked()), Some(State::Poisoned));
    assert_eq!((scene.deadline(), scene.queue.totals().poisoned), (None, 1));
    scene.add("bad", Cause::Resync);
    assert_eq!(scene.next(), None);
    assert_eq!(scene.view("bad").failure.unwrap().code(), "PANIC");

    scene.add("bad", Cause::Edited);
    assert_eq!(scene.next().unwrap().attempt, 0);
    assert_eq!(scene.finish("bad", panicked()), Some(State::Quarantined { until: scene.start + ms(4_000) }));
}

/// H15. Only panics in a row are poison: a handler that got as far as an ordinary failure is not hopeless.
#[test]
fn an_ordinary_failure_between_panics_starts_their_count_anew() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    for (attempt, finish) in (0..).zip([panicked(), panicked(), failed(), panicked(), panicked()]) {
        assert_eq!(scene.next().unwrap().attempt, attempt);
        scene.finish("a", finish);
        scene.now = scene.queue.deadline().expect("it is tried again");
    }
}

/// H20. A changed referent called the reactor of its referrer directly, beside the queue: two ran at once, and what failed
/// was lost. Here a wake-up is one more cause of the same key.
#[test]
fn a_referent_that_changes_during_a_run_makes_one_more_run_after_it() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    scene.next().unwrap();
    for _ in 0..100 {
        scene.add("a", Cause::Referent);
        assert_eq!(scene.next(), None);
    }
    assert_eq!(scene.finish("a", failed()), Some(State::Ready));
    assert_eq!(scene.next().unwrap().attempt, 1);
    scene.finish("a", Finish::Done);
    assert!(scene.queue.is_empty());
}
