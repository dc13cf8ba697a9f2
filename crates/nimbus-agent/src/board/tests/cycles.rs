//! Nodes that wait for each other.

use std::time::Duration;

use crate::board::tests::world::{World, delete, put, thing};

#[test]
fn a_cycle_is_reported_and_everything_else_goes_on() {
    let mut world = World::new();
    world.change([
        put(&thing("a").needs(&["b"])),
        put(&thing("b").needs(&["c"])),
        put(&thing("c").needs(&["a"])),
        put(&thing("d").needs(&["a"])),
        put(&thing("e")),
    ]);
    assert_eq!(world.run(), ["apply e:1"]);
    for name in ["a", "b", "c"] {
        assert!(world.state(name).starts_with("FAILED CYCLE"), "{}", world.state(name));
        assert!(!world.exception(name).unwrap().retryable);
    }
    let message = world.exception("a").unwrap().message.into_owned();
    assert_eq!(message, "waits for itself: demo.v1.thing/a → demo.v1.thing/b → demo.v1.thing/c → demo.v1.thing/a");
    assert_eq!(world.state("d"), "PENDING WAITING a");
    assert_eq!(world.board.counts().failed, 3);
}

#[test]
fn a_change_of_one_member_breaks_a_cycle() {
    let mut world = World::new();
    world.put(&thing("a").needs(&["b"]));
    world.put(&thing("b").needs(&["a"]));
    assert_eq!(world.run(), [""; 0]);
    assert_eq!(world.state("a"), "FAILED CYCLE b");
    world.put(&thing("b").v(2));
    assert_eq!(world.state("a"), "PENDING WAITING b");
    assert_eq!(world.run(), ["apply b:2", "apply a:1"]);
}

#[test]
fn a_delete_of_one_member_breaks_a_cycle() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b").needs(&["a"]))]);
    world.delete("b");
    assert_eq!(world.state("a"), "PENDING WAITING b");
    assert_eq!(world.take(), [""; 0]);
}

#[test]
fn what_is_left_of_two_cycles_is_still_one() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b", "c"])), put(&thing("b").needs(&["a"])), put(&thing("c").needs(&["a"]))]);
    assert_eq!(world.board.counts().failed, 3);
    world.put(&thing("c").v(2));
    assert_eq!(world.run(), ["apply c:2"]);
    assert_eq!(world.state("a"), "FAILED CYCLE b");
    assert_eq!(world.state("b"), "FAILED CYCLE a");
}

#[test]
fn a_cycle_among_many_that_wait_is_found_a_moment_later() {
    let mut world = World::new();
    let crowd: Vec<_> = (0..1000).map(|n| put(&thing(&format!("w{n}")).needs(&["never"]))).collect();
    world.change(crowd);
    world.board.knots.spend_all();
    world.put(&thing("a").needs(&["b"]));
    world.put(&thing("b").needs(&["a"]));
    assert_eq!(world.state("a"), "PENDING WAITING b");
    world.wait_until_due();
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.state("a"), "FAILED CYCLE b");
    assert_eq!(world.board.next_due(), None);
}

#[test]
fn changes_that_only_look_like_a_cycle_together_are_done_in_another_order() {
    // One after another: z drops x, x goes, r goes, r comes again, z takes up r.
    let mut world = World::new();
    world.change([put(&thing("r")), put(&thing("x").needs(&["r"])), put(&thing("z").needs(&["x"]))]);
    world.run();
    world.change([put(&thing("r").life(2)), delete("x"), put(&thing("z").v(2).needs(&["r"]))]);
    assert_eq!(world.run(), ["apply r:1' (r:1)", "apply z:2 (z:1)", "remove x:1"]);
    assert!(world.board.is_settled());
}

#[test]
fn a_group_never_closes_a_cycle() {
    // q, of which an older life must go first, is held by an object whose removal waits for one that needs the new q.
    let mut world = World::new();
    world.change([put(&thing("q")), put(&thing("swap-old").needs(&["q"]))]);
    world.run();
    world.change([put(&thing("q").life(2)), delete("swap-old"), put(&thing("swap-new").needs(&["q"]))]);
    let done = world.run();
    assert!(world.board.is_settled(), "{done:?}");
    world.wait(Duration::from_secs(5));
    assert_eq!(world.take(), [""; 0]);
}

#[test]
fn looking_at_what_is_here_does_not_disturb_what_waits() {
    let mut world = World::new();
    world.put(&thing("seen-a"));
    world.run();
    world.change([put(&thing("seen-a").v(2).needs(&["b"])), put(&thing("b").needs(&["seen-a"]))]);
    assert_eq!(world.state("seen-a"), "FAILED CYCLE b");
    let (since, version) = (world.exception("seen-a").unwrap().since, world.board.version());
    world.wait_until_due();
    assert_eq!(world.take(), ["observe seen-a:1"]);
    assert_eq!(world.state("seen-a"), "FAILED CYCLE b");
    world.done("seen-a");
    assert_eq!(world.state("seen-a"), "FAILED CYCLE b");
    assert_eq!((world.exception("seen-a").unwrap().since, world.board.version()), (since, version));
}
