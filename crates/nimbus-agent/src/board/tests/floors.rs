//! The watermark before what is not finished.

use nimbus_core::{Generation, Revision};

use crate::board::tests::world::{World, delete, put, thing};

fn floor(world: &World, name: &str) -> Option<u64> {
    world.exception(name).map(|exception| exception.floor.0)
}

#[test]
fn the_floor_is_the_lowest_of_the_changes_that_are_not_finished() {
    let mut world = World::new();
    world.floor = 5;
    world.put(&thing("a").needs(&["b"]));
    world.put(&thing("a").v(2).needs(&["b"]));
    assert_eq!(floor(&world, "a"), Some(5));
    world.put(&thing("b"));
    world.run();
    assert_eq!(floor(&world, "a"), None);
}

#[test]
fn a_change_while_a_job_runs_has_a_floor_of_its_own() {
    let mut world = World::new();
    world.floor = 5;
    world.put(&thing("a"));
    world.take();
    world.put(&thing("a").v(2));
    assert_eq!(floor(&world, "a"), Some(5));
    world.done("a");
    assert_eq!(floor(&world, "a"), Some(6), "the first one is finished");
    world.take();
    world.put(&thing("a").v(3));
    world.fail("a", "no");
    assert_eq!(floor(&world, "a"), Some(6));
}

#[test]
fn a_removal_is_unfinished_until_it_is_done() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.floor = 8;
    world.change([delete("a")]);
    assert_eq!(floor(&world, "a"), Some(8));
    assert_eq!(world.exception("a").unwrap().generation, Generation(0));
    world.run();
    assert_eq!(floor(&world, "a"), None);
}

#[test]
fn clearing_the_way_for_another_life_finishes_nothing() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.floor = 8;
    world.put(&thing("a").life(2));
    world.take();
    world.done("a");
    assert_eq!(floor(&world, "a"), Some(8));
}

#[test]
fn a_change_back_to_what_is_applied_is_finished_at_once() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.put(&thing("a").v(2).needs(&["never"]));
    world.put(&thing("a"));
    assert!(world.board.is_settled());
}

#[test]
fn floors_can_be_reset() {
    let mut world = World::new();
    world.floor = 5;
    world.change([put(&thing("a")), put(&thing("b").needs(&["c"]))]);
    world.take();
    world.put(&thing("a").v(2));
    world.board.reset_floors();
    assert_eq!((floor(&world, "a"), floor(&world, "b")), (Some(0), Some(0)));
    world.done("a");
    assert_eq!(floor(&world, "a"), Some(0));
    world.run();
    assert_eq!(floor(&world, "a"), None);
    assert_eq!(world.board.unfinished().map(|exception| exception.floor).collect::<Vec<_>>(), [Revision(0)]);
}
