//! Puts and removals that come together.

use nimbus_core::Failure;

use crate::board::{
    Outcome,
    tests::world::{World, delete, put, thing},
};

fn with(names: &[&str]) -> World {
    let mut world = World::new();
    world.change(names.iter().map(|name| put(&thing(name))).collect::<Vec<_>>());
    world.run();
    world
}

#[test]
fn make_before_break_removes_when_everything_new_is_applied() {
    let mut world = with(&["swap-a", "swap-b"]);
    world.change([delete("swap-a"), delete("swap-b"), put(&thing("swap-c")), put(&thing("swap-d"))]);
    assert_eq!(world.take(), ["apply swap-c:1", "apply swap-d:1"]);
    assert_eq!(world.state("swap-a"), "PENDING HELD swap-c swap-d");
    world.done("swap-c");
    assert_eq!(world.take(), [""; 0]);
    world.done("swap-d");
    assert_eq!(world.run(), ["remove swap-a:1", "remove swap-b:1"]);
    assert_eq!(world.board.barriers.len(), 0);
}

#[test]
fn the_old_one_stays_if_the_new_one_fails() {
    let mut world = with(&["swap-a"]);
    world.change([delete("swap-a"), put(&thing("swap-b"))]);
    world.take();
    world.finish("swap-b", Outcome::Failed(Failure::new("bad").permanent()));
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.state("swap-a"), "PENDING HELD swap-b");
    world.put(&thing("swap-b").v(2));
    let mut done = world.run();
    done.sort();
    assert_eq!(done, ["apply swap-b:2", "remove swap-a:1"], "a newer version is in no group");
}

#[test]
fn a_new_one_that_is_deleted_holds_nothing_up() {
    let mut world = with(&["swap-a"]);
    world.change([delete("swap-a"), put(&thing("swap-b").needs(&["never"]))]);
    assert_eq!(world.take(), [""; 0]);
    world.delete("swap-b");
    assert_eq!(world.run(), ["remove swap-a:1"]);
    assert_eq!(world.board.nodes.len(), 0);
}

#[test]
fn an_old_one_that_comes_back_leaves_its_group() {
    let mut world = with(&["swap-a"]);
    world.change([delete("swap-a"), put(&thing("swap-b"))]);
    world.put(&thing("swap-a"));
    assert_eq!(world.run(), ["apply swap-b:1"]);
    assert_eq!(world.board.barriers.len(), 0);
}

#[test]
fn groups_of_other_transactions_and_kinds_do_not_matter() {
    let mut world = with(&["swap-a", "b"]);
    world.change([put(&thing("swap-c").needs(&["never"]))]);
    world.change([delete("swap-a")]);
    assert_eq!(world.run(), ["remove swap-a:1"]);
    world.change([put(&thing("swap-d").needs(&["never"])), delete("b")]);
    assert_eq!(world.run(), ["remove b:1"]);
}

#[test]
fn an_update_that_came_with_a_removal_comes_first_as_well() {
    let mut world = with(&["swap-a", "swap-b"]);
    world.change([delete("swap-a"), put(&thing("swap-b").v(2)), put(&thing("swap-b").v(2))]);
    assert_eq!(world.run(), ["apply swap-b:2 (swap-b:1)", "remove swap-a:1"]);
}

#[test]
fn what_is_applied_already_holds_nothing_up() {
    let mut world = with(&["swap-a", "swap-b"]);
    world.change([delete("swap-a"), put(&thing("swap-b"))]);
    assert_eq!(world.run(), ["remove swap-a:1"]);
}

#[test]
fn break_before_make_applies_when_everything_old_is_gone() {
    let mut world = with(&["excl-a", "excl-b"]);
    world.change([put(&thing("excl-c")), delete("excl-a"), delete("excl-b")]);
    assert_eq!(world.take(), ["remove excl-a:1", "remove excl-b:1"]);
    assert_eq!(world.state("excl-c"), "PENDING HELD excl-a excl-b");
    world.done("excl-a");
    world.fail("excl-b", "busy");
    assert_eq!(world.take(), [""; 0]);
    world.wait_until_due();
    assert_eq!(world.run(), ["remove excl-b:1", "apply excl-c:1"]);
    assert_eq!(world.board.barriers.len(), 0);
}

#[test]
fn a_removal_that_others_hold_up_holds_up_nobody() {
    let mut world = World::new();
    world.change([put(&thing("excl-a")), put(&thing("b").needs(&["excl-a"]))]);
    world.run();
    world.change([put(&thing("excl-c")), delete("excl-a")]);
    assert_eq!(world.run(), ["apply excl-c:1"]);
    assert_eq!(world.state("excl-a"), "PENDING WAITING b");
}

#[test]
fn the_last_removal_that_can_be_done_opens_the_group() {
    let mut world = World::new();
    world.change([put(&thing("excl-a")), put(&thing("excl-b")), put(&thing("x").needs(&["excl-a"]))]);
    world.run();
    world.change([put(&thing("excl-c")), delete("excl-a"), delete("excl-b")]);
    assert_eq!(world.run(), ["remove excl-b:1", "apply excl-c:1"]);
    assert_eq!(world.state("excl-a"), "PENDING WAITING x");
}

#[test]
fn removals_in_a_row_are_all_waited_for() {
    let mut world = World::new();
    world.change([put(&thing("excl-a")), put(&thing("excl-b").needs(&["excl-a"]))]);
    world.run();
    world.change([put(&thing("excl-c")), delete("excl-a"), delete("excl-b")]);
    assert_eq!(world.run(), ["remove excl-b:1", "remove excl-a:1", "apply excl-c:1"]);
}

#[test]
fn a_removal_that_never_succeeds_holds_up_nobody() {
    let mut world = with(&["excl-a", "excl-b"]);
    world.change([put(&thing("excl-c")), delete("excl-a"), delete("excl-b")]);
    world.take();
    world.finish("excl-a", Outcome::Failed(Failure::new("bad").permanent()));
    world.finish("excl-b", Outcome::Panicked("oops".into()));
    assert_eq!(world.run(), ["apply excl-c:1"]);
}
