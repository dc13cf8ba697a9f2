//! What is stopped: paused keys and lanes, closed groups, a queue that drains; and what is taken back.

use crate::queue::{
    Cause, Causes, Config, Finish, Group, Policy, Queue, State,
    tests::scene::{Scene, failed, ms, policy},
};

const SHARD: Group = Group(3);

#[test]
fn a_paused_key_collects_causes_and_runs_once_when_resumed() {
    let mut scene = Scene::new(policy());
    scene.queue.pause(scene.lane, &"a", scene.now);
    for cause in [Cause::Edited, Cause::Status, Cause::Edited] {
        scene.add("a", cause);
    }
    assert_eq!(scene.next(), None);
    assert_eq!(scene.deadline(), None);
    assert_eq!(scene.view("a").state, State::Paused);
    assert!(scene.queue.resume(scene.lane, &"a", scene.now));
    assert_eq!(scene.next().unwrap().causes, Causes::from_iter([Cause::Edited, Cause::Status]));
    scene.finish("a", Finish::Done);
    assert!(scene.queue.is_empty());
}

#[test]
fn a_pause_outlives_the_run_and_is_nothing_to_do_when_it_ends() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    scene.next().unwrap();
    scene.queue.pause(scene.lane, &"a", scene.now);
    assert_eq!(scene.finish("a", failed()), Some(State::Paused));
    assert_eq!(scene.at(1_000).next(), None);
    scene.queue.resume(scene.lane, &"a", scene.now);
    assert_eq!(scene.next().unwrap().attempt, 1);
    scene.queue.pause(scene.lane, &"a", scene.now);
    scene.finish("a", Finish::Done);
    assert_eq!(scene.queue.len(), 1);
    scene.queue.resume(scene.lane, &"a", scene.now);
    assert!(scene.queue.is_empty());
}

#[test]
fn a_paused_lane_hands_out_nothing_and_holds_up_no_other() {
    let mut scene = Scene::new(policy());
    let other = scene.queue.lane(Policy::default());
    scene.add("a", Cause::Edited);
    scene.queue.add(other, "b", Cause::Edited, scene.now);
    scene.queue.pause_lane(scene.lane);
    assert_eq!(scene.next_key(), Some("b"));
    assert_eq!(scene.next_key(), None);
    assert_eq!(scene.deadline(), None);
    scene.queue.resume_lane(scene.lane);
    assert_eq!(scene.next_key(), Some("a"));
}

#[test]
fn a_closed_group_hands_out_nothing_and_says_when_it_has_come_to_rest() {
    let mut scene = Scene::new(policy());
    for key in ["a", "b"] {
        scene.queue.add_in(SHARD, scene.lane, key, Cause::Edited, scene.now);
    }
    scene.add("c", Cause::Edited);
    assert_eq!(scene.next_key(), Some("a"));
    scene.queue.close_group(SHARD, scene.now);
    assert_eq!(scene.next_key(), Some("c"));
    assert_eq!(scene.next_key(), None);
    assert_eq!(scene.queue.running_in(SHARD), 1);
    assert_eq!(scene.view("b").state, State::Held);
    assert_eq!(scene.finish("a", Finish::RequeueAfter(ms(5))), Some(State::Held));
    assert_eq!(scene.queue.running_in(SHARD), 0);
    assert_eq!(scene.deadline(), None);
    scene.at(10);
    scene.queue.open_group(SHARD, scene.now);
    assert_eq!([scene.next_key(), scene.next_key()], [Some("a"), Some("b")]);
}

#[test]
fn a_forgotten_group_leaves_nothing_behind_and_ignores_how_its_runs_end() {
    let mut scene = Scene::new(policy());
    for key in ["a", "b"] {
        scene.queue.add_in(SHARD, scene.lane, key, Cause::Edited, scene.now);
    }
    assert_eq!(scene.next_key(), Some("a"));
    scene.queue.forget_group(SHARD, scene.now);
    assert_eq!(scene.queue.len(), 1);
    assert_eq!(scene.finish("a", failed()), None);
    assert!(scene.queue.is_empty());
}

#[test]
fn a_key_that_is_added_after_it_was_forgotten_begins_anew() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Boot, failed());
    scene.at(100).next().unwrap();
    scene.queue.forget(scene.lane, &"a", scene.now);
    scene.add("a", Cause::Status);
    scene.finish("a", failed());
    let job = scene.next().unwrap();
    assert_eq!((job.attempt, job.causes), (0, Cause::Status.into()));
}

#[test]
fn an_abandoned_job_is_as_if_it_had_never_begun() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Edited, failed());
    let job = scene.at(100).next().unwrap();
    scene.add("a", Cause::Status);
    scene.queue.abandon(scene.lane, &"a", scene.now).unwrap();
    let again = scene.at(120).next().unwrap();
    assert_eq!(again.causes, job.causes | Cause::Status.into());
    assert_eq!((again.attempt, again.waited), (1, ms(20)));
    assert_eq!(scene.next(), None);
}

#[test]
fn a_job_ends_once() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Edited, failed());
    scene.queue.finish(scene.lane, &"a", Finish::Done, scene.now, 1.0).unwrap_err();
    scene.queue.abandon(scene.lane, &"a", scene.now).unwrap_err();
    scene.queue.abandon(scene.lane, &"b", scene.now).unwrap_err();
    assert_eq!(scene.view("a").attempts, 1);
}

#[test]
fn a_queue_that_drains_hands_out_nothing_and_is_idle_when_all_runs_have_ended() {
    let mut scene = Scene::new(policy());
    scene.add("a", Cause::Edited);
    scene.add("b", Cause::Edited);
    assert_eq!(scene.next_key(), Some("a"));
    scene.queue.drain();
    assert_eq!((scene.next(), scene.deadline()), (None, None));
    assert!(!scene.queue.is_idle());
    scene.finish("a", Finish::Done);
    assert!(scene.queue.is_idle());
    assert_eq!(scene.queue.len(), 1);
}

#[test]
fn a_key_can_be_asked_about_and_is_counted_where_it_is() {
    let mut scene = Scene::new(policy());
    scene.run("a", Cause::Edited, failed());
    scene.at(7).add("b", Cause::Boot);
    let view = scene.view("a");
    assert_eq!((view.attempts, view.since), (1, scene.start));
    assert_eq!(view.failure.unwrap().message(), "down");
    let counts = scene.queue.counts(scene.lane);
    assert_eq!((counts.retrying, counts.ready, counts.running), (1, 1, 0));
    assert_eq!(scene.queue.totals(), counts);
    assert_eq!(scene.queue.entries().count(), 2);
}

#[test]
fn the_same_key_in_two_lanes_is_two_entries() {
    let mut scene = Scene::new(policy());
    let other = scene.queue.lane(policy());
    scene.add("a", Cause::Edited);
    scene.queue.add(other, "a", Cause::Edited, scene.now);
    assert_eq!([scene.next_key(), scene.next_key(), scene.next_key()], [Some("a"), Some("a"), None]);
}

#[test]
fn a_hundred_thousand_keys_that_are_done_cost_nothing() {
    let mut queue = Queue::new(Config::default());
    let (lane, now) = (queue.lane(policy()), tokio::time::Instant::now());
    for key in 0..100_000 {
        queue.add_in(Group(1), lane, key, Cause::Boot, now);
    }
    while let Some(job) = queue.next(now) {
        queue.finish(lane, &job.key, Finish::Done, now, 0.0).unwrap();
    }
    assert!(queue.is_empty() && queue.is_idle());
    queue.add(lane, 7, Cause::Edited, now);
    assert_eq!(queue.next(now).unwrap().key, 7);
}
