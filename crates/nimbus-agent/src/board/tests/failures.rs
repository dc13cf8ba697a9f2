//! What fails, and when it is tried again.

use std::time::Duration;

use nimbus_core::Failure;

use crate::{
    board::{
        Outcome,
        job::Event,
        tests::world::{RETRY, World, put, thing},
    },
    handler::{Reason, Status},
};

#[test]
fn a_failure_is_tried_again_until_it_succeeds_and_the_count_is_exact() {
    let mut world = World::new();
    world.put(&thing("a"));
    for attempt in 0..7 {
        let jobs = world.jobs(9);
        let reason = if attempt == 0 { Reason::Changed } else { Reason::Retry };
        assert_eq!(World::reason(&jobs[0]), (reason, attempt));
        assert_eq!(jobs[0].begins, attempt == 0);
        world.fail("a", "no");
        assert_eq!(world.state("a"), "FAILED ERROR");
        let exception = world.exception("a").unwrap();
        assert_eq!((exception.attempts, exception.retryable), (attempt + 1, true));
        let wait = exception.retry_at.unwrap() - world.now;
        assert!(wait <= RETRY.base * 2_u32.pow(attempt) && wait <= RETRY.max);
        assert_eq!(world.take(), [""; 0]);
        world.wait_until_due();
    }
    assert_eq!(world.run(), ["apply a:1"]);
    assert_eq!(world.state("a"), "fine");
    assert_eq!(world.board.next_due(), None);
}

#[test]
fn a_new_version_starts_afresh() {
    let mut world = World::new();
    world.put(&thing("a"));
    for _ in 0..3 {
        world.wait(RETRY.max);
        world.take();
        world.fail("a", "no");
    }
    world.put(&thing("a").v(2));
    let jobs = world.jobs(9);
    assert_eq!(World::reason(&jobs[0]), (Reason::Changed, 0));
    assert!(jobs[0].begins);
}

#[test]
fn a_failure_of_an_outdated_version_is_nobodys_concern() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.take();
    world.put(&thing("a").v(2));
    world.fail("a", "no");
    assert_eq!(world.state("a"), "PENDING QUEUED");
    assert_eq!(world.run(), ["apply a:2"]);
}

#[test]
fn a_failure_may_say_when_to_try_again() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.take();
    world.finish("a", Outcome::Failed(Failure::new("busy").retry_after(Duration::from_secs(77))));
    assert_eq!(world.board.next_due(), Some(world.now + Duration::from_secs(77)));
}

#[test]
fn a_permanent_failure_waits_for_another_version() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.take();
    world.finish("a", Outcome::Failed(Failure::new("bad").with_code("DECODE").permanent()));
    assert_eq!(world.state("a"), "FAILED DECODE");
    assert!(!world.exception("a").unwrap().retryable);
    assert_eq!(world.board.next_due(), None);
    world.put(&thing("a").v(2));
    assert_eq!(world.run(), ["apply a:2"]);
}

#[test]
fn a_panic_quarantines_one_object_and_one_version() {
    let mut world = World::new();
    world.change([put(&thing("a")), put(&thing("b"))]);
    world.take();
    let finished = world.finish("a", Outcome::Panicked("index out of bounds".into()));
    assert_eq!(finished.event, Some(Event::Quarantined { attempts: 1 }));
    world.done("b");
    assert_eq!(world.state("a"), "FAILED PANIC");
    assert!(world.exception("a").unwrap().retryable);
    assert_eq!(world.board.counts().quarantined, 1);
    world.put(&thing("a").v(2));
    assert_eq!(world.board.counts().quarantined, 0);
    assert_eq!(world.run(), ["apply a:2"]);
}

#[test]
fn a_removal_that_fails_is_tried_again() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.delete("a");
    let jobs = world.jobs(1);
    assert!(jobs[0].begins, "after a crash nobody could say whether it is still there");
    world.fail("a", "busy");
    assert_eq!(world.state("a"), "FAILED ERROR");
    world.wait_until_due();
    assert_eq!(world.run(), ["remove a:1"]);
}

#[test]
fn a_cancelled_job_runs_again() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.take();
    world.finish("a", Outcome::Dropped);
    let jobs = world.jobs(1);
    assert_eq!(World::reason(&jobs[0]), (Reason::Changed, 0));
}

#[test]
fn going_back_after_a_failed_attempt_is_work() {
    // The attempt may have done half of it.
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.put(&thing("a").v(2));
    world.take();
    world.fail("a", "no");
    world.put(&thing("a"));
    assert_eq!(world.run(), ["apply a:1 (a:1)"]);
}

#[test]
fn coming_back_after_a_failed_removal_is_work() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.delete("a");
    world.take();
    world.fail("a", "no");
    world.put(&thing("a"));
    assert_eq!(world.run(), ["apply a:1 (a:1)"]);
}

#[test]
fn what_a_failed_attempt_needs_stays() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b"))]);
    world.jobs(1);
    world.done("b");
    world.take();
    world.fail("a", "half of it");
    world.delete("b");
    assert_eq!(world.state("b"), "PENDING WAITING a");
    world.delete("a");
    assert_eq!(world.run(), ["remove a:1", "remove b:1"]);
}

#[test]
fn retries_and_news_take_turns() {
    let mut world = World::new();
    for n in 0..4 {
        world.put(&thing(&format!("old{n}")));
    }
    for job in world.jobs(9) {
        world.fail(job.key.name(), "no");
    }
    world.wait(RETRY.max);
    for n in 0..4 {
        world.put(&thing(&format!("new{n}")));
    }
    let names: Vec<_> = world.jobs(4).iter().map(|job| job.key.name()[..3].to_owned()).collect();
    assert_eq!(names.iter().filter(|name| *name == "old").count(), 2);
}

#[test]
fn a_job_that_takes_long_becomes_worth_telling() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.take();
    let version = world.board.version();
    assert_eq!(world.board.next_due(), Some(world.now + Duration::from_secs(10)));
    world.wait_until_due();
    world.take();
    assert!(world.board.version() > version);
    assert_eq!(world.state("a"), "PENDING RUNNING");
    assert_eq!(world.exception("a").unwrap().since + Duration::from_secs(10), world.now);
    assert_eq!(world.board.next_due(), None);
}

#[test]
fn a_degraded_object_is_applied_and_told() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b"))]);
    world.take();
    world.finish("b", Outcome::Applied(Status::degraded("SLOW", "one disk of two")));
    assert_eq!(world.state("b"), "DEGRADED SLOW");
    assert!(world.exception("b").unwrap().message.contains("one disk"));
    assert_eq!(world.run(), ["apply a:1"]);
    world.put(&thing("b").v(2));
    assert_eq!(world.state("b"), "PENDING QUEUED", "each object is told once");
    world.run();
    assert_eq!(world.state("b"), "fine");
}

#[test]
fn the_end_of_a_job_that_nobody_began_is_ignored() {
    let mut world = World::new();
    world.put(&thing("a"));
    let key = thing("a").item().key().clone();
    assert_eq!(world.board.finish(&key, Outcome::Removed, world.now), None);
    world.take();
    world.done("a");
    assert_eq!(world.board.finish(&key, Outcome::Removed, world.now), None);
}
