//! What an agent remembers from before it was restarted.

use nimbus_core::Revision;

use crate::{
    board::tests::world::{INTERVAL, Thing, World, delete, put, thing, words},
    handler::Reason,
};

fn restored(desired: &[Thing], applied: &[Thing], started: &[Thing], trust: bool) -> World {
    let mut world = World::new();
    let items = |things: &[Thing]| things.iter().map(Thing::item).collect();
    world.board.restore(items(desired), items(applied), items(started), trust, world.now);
    world.board.audit();
    world
}

#[test]
fn what_was_applied_is_trusted() {
    let a = thing("a");
    let mut world = restored(std::slice::from_ref(&a), std::slice::from_ref(&a), &[], true);
    assert!(world.board.is_settled());
    assert_eq!(world.take(), [""; 0]);
}

#[test]
fn without_trust_everything_is_applied_again_in_order() {
    let (a, b) = (thing("a").needs(&["b"]), thing("b"));
    let mut world = restored(&[a.clone(), b.clone()], &[a, b], &[], false);
    assert_eq!(world.exception("a").unwrap().floor, Revision(0));
    let jobs = world.jobs(9);
    assert_eq!(jobs.iter().map(words).collect::<Vec<_>>(), ["apply b:1 (b:1)"]);
    assert_eq!(World::reason(&jobs[0]), (Reason::Started, 0));
    assert!(!jobs[0].begins);
    world.done("b");
    assert_eq!(world.run(), ["apply a:1 (a:1)"]);
    assert!(world.board.is_settled());
}

#[test]
fn what_changed_meanwhile_is_done() {
    let mut world = restored(&[thing("a").v(2), thing("b")], &[thing("a"), thing("c")], &[], true);
    assert_eq!(world.run(), ["apply a:2 (a:1)", "apply b:1", "remove c:1"]);
}

#[test]
fn what_was_begun_is_removed_with_care_or_done_again() {
    let mut world = restored(&[thing("a")], &[thing("a")], &[thing("a").v(2), thing("b")], true);
    assert_eq!(world.run(), ["apply a:1 (a:1)", "remove b:1"], "neither is as it was, for all we know");
}

#[test]
fn what_was_begun_holds_what_it_needs() {
    let mut world = restored(&[], &[thing("b")], &[thing("a").needs(&["b"])], true);
    assert_eq!(world.run(), ["remove a:1", "remove b:1"]);
}

#[test]
fn a_delete_that_came_while_the_agent_was_away_follows_the_restore() {
    let a = thing("a");
    let mut world = restored(std::slice::from_ref(&a), std::slice::from_ref(&a), &[], false);
    world.change([delete("a"), put(&thing("b"))]);
    assert_eq!(world.run(), ["remove a:1", "apply b:1"]);
}

#[test]
fn what_is_trusted_is_looked_at_soon() {
    let a = thing("seen-a");
    let mut world = restored(std::slice::from_ref(&a), std::slice::from_ref(&a), &[], true);
    assert!(world.board.next_due().unwrap() <= world.now + INTERVAL / 6);
    world.wait_until_due();
    assert_eq!(world.run(), ["observe seen-a:1"]);
}

#[test]
fn new_ones_still_come_first_after_a_restart() {
    let mut world = restored(&[thing("swap-b")], &[thing("swap-a")], &[], true);
    assert_eq!(world.run(), ["apply swap-b:1", "remove swap-a:1"]);
}
