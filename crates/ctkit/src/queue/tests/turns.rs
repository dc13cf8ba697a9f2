//! Whose turn it is.

use tokio::time::Instant;

use crate::queue::{
    Cause, Config, Finish, Policy, Queue,
    tests::scene::{Scene, policy},
};

/// Keys that run one at a time, each done at once, in the order in which they do.
fn order(queue: &mut Queue<&'static str>, now: Instant) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Some(job) = queue.next(now) {
        keys.push(job.key);
        queue.finish(job.lane, &job.key, Finish::Done, now, 0.0).unwrap();
    }
    keys
}

#[test]
fn keys_that_are_alike_run_in_the_order_in_which_they_became_ready() {
    let mut scene = Scene::new(policy());
    scene.add_after("c", 20);
    scene.add_after("b", 10);
    scene.add("a", Cause::Edited);
    scene.at(30);
    assert_eq!(order(&mut scene.queue, scene.now), ["a", "b", "c"]);
}

#[test]
fn edits_come_before_the_boot_list_which_keeps_its_share() {
    let mut scene = Scene::with(Config { boot_share: 3, ..Config::default() }, policy());
    for key in ["1", "2", "3"] {
        scene.add(key, Cause::Boot);
    }
    for key in ["a", "b", "c", "d", "e"] {
        scene.add(key, Cause::Edited);
    }
    assert_eq!(order(&mut scene.queue, scene.now), ["a", "b", "1", "c", "d", "2", "e", "3"]);
}

#[test]
fn an_edit_takes_its_key_out_of_the_boot_list() {
    let mut scene = Scene::new(policy());
    for key in ["1", "2", "3"] {
        scene.add(key, Cause::Boot);
    }
    scene.add("3", Cause::Edited);
    scene.add("3", Cause::Boot);
    assert_eq!(order(&mut scene.queue, scene.now), ["3", "1", "2"]);
}

#[test]
fn lanes_take_turns_however_much_each_has_to_do() {
    let mut scene = Scene::new(policy());
    let other = scene.queue.lane(Policy::default());
    scene.queue.lane(Policy::default());
    for key in ["a", "b", "c", "d"] {
        scene.add(key, Cause::Edited);
    }
    for key in ["x", "y"] {
        scene.queue.add(other, key, Cause::Boot, scene.now);
    }
    assert_eq!(order(&mut scene.queue, scene.now), ["a", "x", "b", "y", "c", "d"]);
}
