//! How much runs at once, and how often something begins.

use std::time::Duration;

use crate::queue::{
    Cause, Config, Finish, Policy, Rate,
    tests::scene::{Scene, ms, policy},
};

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn fill(scene: &mut Scene) {
    for key in KEYS {
        scene.add(key, Cause::Edited);
    }
}

fn take_all(scene: &mut Scene) -> usize {
    std::iter::from_fn(|| scene.next()).count()
}

#[test]
fn no_more_run_at_once_than_the_lane_allows() {
    let mut scene = Scene::new(Policy { concurrency: 2, ..policy() });
    fill(&mut scene);
    assert_eq!(take_all(&mut scene), 2);
    assert_eq!(scene.deadline(), None, "time alone makes no room");
    scene.finish("a", Finish::Done);
    assert_eq!(scene.next_key(), Some("c"));
}

#[test]
fn no_more_run_at_once_than_the_queue_allows() {
    let mut scene = Scene::with(Config { concurrency: 3, ..Config::default() }, policy());
    let other = scene.queue.lane(policy());
    fill(&mut scene);
    scene.queue.add(other, "z", Cause::Edited, scene.now);
    assert_eq!(take_all(&mut scene), 3);
    scene.finish("a", Finish::Done);
    assert_eq!(take_all(&mut scene), 1);
}

#[test]
fn a_concurrency_of_nothing_is_one() {
    let mut scene = Scene::with(Config { concurrency: 0, ..Config::default() }, Policy { concurrency: 0, ..policy() });
    fill(&mut scene);
    assert_eq!(take_all(&mut scene), 1);
}

#[test]
fn a_lane_begins_a_burst_and_then_one_per_interval() {
    let rate = Some(Rate { interval: ms(10), burst: 2 });
    let mut scene = Scene::new(Policy { rate, ..policy() });
    fill(&mut scene);
    assert_eq!(take_all(&mut scene), 2);
    assert_eq!(scene.deadline(), Some(10));
    assert_eq!(take_all(scene.at(9)), 0);
    assert_eq!(take_all(scene.at(10)), 1);
    assert_eq!(take_all(scene.at(35)), 2);
    assert_eq!(scene.deadline(), Some(45), "what is not used is not saved up beyond the burst");
}

#[test]
fn a_lane_that_has_used_up_its_rate_holds_up_no_other() {
    let rate = Some(Rate { interval: ms(10), burst: 1 });
    let mut scene = Scene::new(Policy { rate, ..policy() });
    let other = scene.queue.lane(policy());
    fill(&mut scene);
    for key in KEYS {
        scene.queue.add(other, key, Cause::Edited, scene.now);
    }
    assert_eq!(take_all(&mut scene), 1 + KEYS.len());
}

#[test]
fn the_rate_of_the_queue_holds_for_all_lanes_together() {
    let rate = Some(Rate { interval: ms(10), burst: 3 });
    let mut scene = Scene::with(Config { rate, ..Config::default() }, policy());
    let other = scene.queue.lane(policy());
    fill(&mut scene);
    for key in KEYS {
        scene.queue.add(other, key, Cause::Edited, scene.now);
    }
    assert_eq!(take_all(&mut scene), 3);
    assert_eq!(scene.deadline(), Some(10));
    assert_eq!(take_all(scene.at(20)), 2);
}

#[test]
fn an_abandoned_job_has_used_up_its_share_of_the_rate() {
    let rate = Some(Rate { interval: ms(10), burst: 1 });
    let mut scene = Scene::new(Policy { rate, ..policy() });
    scene.add("a", Cause::Edited);
    scene.next().unwrap();
    scene.queue.abandon(scene.lane, &"a", scene.now).unwrap();
    assert_eq!((scene.next(), scene.deadline()), (None, Some(10)));
}

#[test]
fn a_time_that_no_clock_can_count_to_is_very_late() {
    let rate = Some(Rate { interval: Duration::MAX, burst: 1 });
    let mut scene = Scene::new(Policy { rate, ..policy() });
    scene.queue.add_after(scene.lane, "z", Duration::MAX, scene.now);
    scene.run("a", Cause::Edited, Finish::RequeueAfter(Duration::MAX));
    scene.add("b", Cause::Edited);
    assert_eq!(scene.at(1_000_000_000).next(), None);
}
