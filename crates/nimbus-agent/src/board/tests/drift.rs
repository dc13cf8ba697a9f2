//! Looking whether the machine still is as it was left.

use std::time::Duration;

use nimbus_core::Failure;

use crate::{
    board::{
        Outcome,
        job::Event,
        tests::world::{INTERVAL, RETRY, World, key, put, thing},
    },
    handler::{Observation, Reason},
};

/// A world in which one object is applied and waits to be looked at.
fn seen() -> World {
    let mut world = World::new();
    world.put(&thing("seen-a"));
    world.run();
    world
}

/// Waits until a look begins.
fn look(world: &mut World) {
    world.wait_until_due();
    assert_eq!(world.take(), ["observe seen-a:1"]);
}

fn drifted() -> Outcome {
    Outcome::Observed(Observation::Drifted("changed by hand".into()))
}

#[test]
fn an_applied_object_is_looked_at_every_interval() {
    let mut world = seen();
    let begin = world.now;
    look(&mut world);
    assert!(world.now <= begin + INTERVAL, "the first look is somewhere within the interval");
    for _ in 0..3 {
        let before = world.now;
        world.done("seen-a");
        look(&mut world);
        let wait = world.now - before;
        assert!(wait >= INTERVAL.mul_f64(0.9) && wait <= INTERVAL.mul_f64(1.1), "{wait:?}");
    }
    assert!(world.board.is_settled());
    assert_eq!(world.state("seen-a"), "fine");
}

#[test]
fn kinds_without_an_interval_are_never_looked_at() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    assert_eq!(world.board.next_due(), None);
}

#[test]
fn drift_is_healed_at_once_and_is_not_unfinished() {
    let mut world = seen();
    look(&mut world);
    assert_eq!(world.finish("seen-a", drifted()).event, Some(Event::Drifted { in_a_row: 1 }));
    let jobs = world.jobs(1);
    assert_eq!(World::reason(&jobs[0]), (Reason::Drift, 0));
    assert!(!jobs[0].begins);
    assert!(world.board.is_settled());
    let healed = world.done("seen-a");
    assert_eq!(healed.event, Some(Event::Healed { in_a_row: 1 }));
    assert_eq!(healed.applied, Some(Some(thing("seen-a").item())));
    assert_eq!(world.state("seen-a"), "fine");
    look(&mut world);
}

#[test]
fn whoever_fights_for_an_object_is_answered_ever_later_and_reported() {
    let mut world = seen();
    let mut waits = Vec::new();
    for round in 1..=9 {
        look(&mut world);
        world.finish("seen-a", drifted());
        assert_eq!(world.state("seen-a"), if round < 3 { "fine" } else { "DEGRADED DRIFT" });
        let found = world.now;
        if round > 1 {
            assert_eq!(world.take(), [""; 0]);
            world.wait_until_due();
        }
        assert_eq!(world.run(), ["apply seen-a:1 (seen-a:1)"]);
        waits.push((world.now - found).as_secs_f64() / INTERVAL.as_secs_f64());
    }
    for (wait, expected) in waits.iter().zip([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0]) {
        assert!((expected * 0.9..=expected * 1.1).contains(wait), "{waits:?}");
    }
    assert_eq!(world.exception("seen-a").unwrap().attempts, 9);
    look(&mut world);
    world.done("seen-a");
    assert_eq!(world.state("seen-a"), "fine");
}

#[test]
fn an_observation_during_which_the_object_changed_is_thrown_away() {
    let mut world = seen();
    look(&mut world);
    world.put(&thing("seen-a").v(2));
    assert_eq!(world.take(), [""; 0], "one call at a time");
    assert_eq!(world.finish("seen-a", drifted()).event, None);
    let jobs = world.jobs(9);
    assert_eq!(World::reason(&jobs[0]), (Reason::Changed, 0));
    world.done("seen-a");
    assert_eq!(world.take(), [""; 0]);
}

#[test]
fn an_observer_that_always_runs_sees_no_work_half_done() {
    // It reports drift whenever it sees anything but the last version that was applied.
    let mut world = seen();
    for version in 2..200 {
        world.put(&thing("seen-a").v(version));
        assert_eq!(world.run().len(), 1, "one call for each change and no other");
        world.wait(Duration::from_millis(1));
    }
}

#[test]
fn the_last_good_version_is_kept_while_a_newer_one_fails() {
    let mut world = seen();
    world.put(&thing("seen-a").v(2));
    world.take();
    world.finish("seen-a", Outcome::Failed(Failure::new("bad").permanent()));
    look(&mut world);
    world.finish("seen-a", drifted());
    assert_eq!(world.run(), ["apply seen-a:1 (seen-a:1)"]);
    assert_eq!(world.state("seen-a"), "FAILED ERROR", "which does not make the newer one any better");
    look(&mut world);
}

#[test]
fn healing_an_older_version_does_not_hasten_the_newer_one() {
    let mut world = seen();
    world.put(&thing("seen-a").v(2));
    world.take();
    world.finish("seen-a", Outcome::Failed(Failure::new("busy").retry_after(INTERVAL * 100)));
    let retry_at = world.exception("seen-a").unwrap().retry_at;
    look(&mut world);
    world.finish("seen-a", drifted());
    assert_eq!(world.run(), ["apply seen-a:1 (seen-a:1)"]);
    assert_eq!(world.exception("seen-a").unwrap().retry_at, retry_at);
}

#[test]
fn healing_that_fails_is_degraded_and_tried_again() {
    let mut world = seen();
    look(&mut world);
    world.finish("seen-a", drifted());
    world.take();
    world.fail("seen-a", "read-only file system");
    assert_eq!(world.state("seen-a"), "DEGRADED ERROR");
    assert!(world.board.is_settled(), "it was applied, and the watermark does not go back");
    world.put(&thing("b").needs(&["seen-a"]));
    assert_eq!(world.take(), [""; 0], "nothing is built on it");
    assert!(world.board.next_due().unwrap() <= world.now + RETRY.base);
    world.wait_until_due();
    let jobs = world.jobs(9);
    assert_eq!(World::reason(&jobs[0]), (Reason::Retry, 1));
    world.done("seen-a");
    assert_eq!(world.run(), ["apply b:1"]);
    assert_eq!(world.state("seen-a"), "fine");
}

#[test]
fn looking_that_fails_changes_nothing_and_is_told_the_third_time() {
    let mut world = seen();
    for (round, outcome) in
        [Outcome::Failed(Failure::new("no")), Outcome::Panicked("oops".into()), Outcome::Failed(Failure::new("no"))]
            .into_iter()
            .enumerate()
    {
        look(&mut world);
        assert_eq!(world.finish("seen-a", outcome).applied, None);
        assert_eq!(world.state("seen-a"), if round < 2 { "fine" } else { "DEGRADED OBSERVE" });
    }
    let before = world.now;
    look(&mut world);
    assert!(world.now - before >= INTERVAL * 3);
    world.done("seen-a");
    assert_eq!(world.state("seen-a"), "fine");
}

#[test]
fn looks_come_last_and_have_half_of_the_room() {
    let mut world = World::new();
    let names: Vec<_> = (0..20).map(|n| format!("seen-{n}")).collect();
    world.change(names.iter().map(|name| put(&thing(name))).collect::<Vec<_>>());
    world.run();
    world.wait(INTERVAL * 2);
    assert_eq!(world.jobs(8).len(), 4);
    assert_eq!(world.jobs(4).len(), 0);
    world.put(&thing("a"));
    assert_eq!(world.jobs(4).iter().map(|job| job.key.clone()).collect::<Vec<_>>(), [key("a")]);
}

#[test]
fn what_is_to_go_is_not_looked_at() {
    let mut world = World::new();
    world.change([put(&thing("seen-a")), put(&thing("b").needs(&["seen-a"]))]);
    world.run();
    world.delete("seen-a");
    assert_eq!(world.state("seen-a"), "PENDING WAITING b");
    assert_eq!(world.board.next_due(), None);
}

#[test]
fn what_cannot_be_healed_and_is_to_go_holds_up_nobody() {
    // Its referrer waited for it to be healed, and it waited for its referrer to go.
    let mut world = World::new();
    world.change([put(&thing("seen-a")), put(&thing("b").needs(&["seen-a"]))]);
    world.run();
    look(&mut world);
    world.finish("seen-a", drifted());
    world.take();
    world.fail("seen-a", "read-only file system");
    world.put(&thing("b").v(2).needs(&["seen-a"]));
    assert_eq!(world.state("b"), "PENDING WAITING seen-a");
    world.delete("seen-a");
    assert_eq!(world.run(), ["apply b:2 (b:1)"]);
    world.put(&thing("b").v(3));
    assert_eq!(world.run(), ["apply b:3 (b:2)", "remove seen-a:1"]);
}
