//! References order what is done.

use crate::board::{
    Outcome,
    tests::world::{World, delete, key, put, thing},
};

#[test]
fn a_referrer_waits_for_its_referent_and_says_so() {
    let mut world = World::new();
    world.put(&thing("a").needs(&["b"]));
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.state("a"), "PENDING WAITING b");
    world.put(&thing("b"));
    assert_eq!(world.run(), ["apply b:1", "apply a:1"]);
    assert_eq!(world.state("a"), "fine");
}

#[test]
fn a_referent_is_removed_after_its_referrers_whatever_came_first() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b"))]);
    world.run();
    world.delete("b");
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.state("b"), "PENDING WAITING a");
    world.delete("a");
    assert_eq!(world.run(), ["remove a:1", "remove b:1"]);
    assert_eq!(world.board.nodes.len(), 0);
}

#[test]
fn an_update_that_drops_a_reference_frees_the_referent() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b"))]);
    world.run();
    world.delete("b");
    world.put(&thing("a").v(2));
    assert_eq!(world.take(), ["apply a:2 (a:1)"]);
    // Until it is applied, the old version is still there.
    assert_eq!(world.take(), [""; 0]);
    world.done("a");
    assert_eq!(world.run(), ["remove b:1"]);
}

#[test]
fn an_update_that_drops_a_missing_reference_frees_the_referrer() {
    let mut world = World::new();
    world.put(&thing("a").needs(&["b", "c"]));
    world.put(&thing("c"));
    assert_eq!(world.run(), ["apply c:1"]);
    assert_eq!(world.state("a"), "PENDING WAITING b");
    world.put(&thing("a").v(2).needs(&["c"]));
    assert_eq!(world.run(), ["apply a:2"]);
}

#[test]
fn a_delete_before_resolution_ends_at_once_and_in_silence() {
    let mut world = World::new();
    world.put(&thing("a").needs(&["b"]));
    world.take();
    world.delete("a");
    assert_eq!(world.take(), [""; 0]);
    assert!(world.board.is_settled());
    assert_eq!(world.board.nodes.len(), 0, "nothing is left of it, nor of what it needed");
}

#[test]
fn three_referrers_of_which_the_first_stays_blocked() {
    // Once, the others were looked at only after the first had been freed.
    let mut world = World::new();
    world.put(&thing("a1").needs(&["b", "never"]));
    world.put(&thing("a2").needs(&["b"]));
    world.put(&thing("a3").needs(&["b"]));
    world.put(&thing("b"));
    assert_eq!(world.run(), ["apply b:1", "apply a2:1", "apply a3:1"]);
    assert_eq!(world.state("a1"), "PENDING WAITING never");
    world.change([delete("a2"), delete("a3"), delete("b")]);
    assert_eq!(world.run(), ["remove a2:1", "remove a3:1", "remove b:1"]);
    assert_eq!(world.state("a1"), "PENDING WAITING b never");
}

#[test]
fn changes_while_blocked_collapse_into_the_last() {
    let mut world = World::new();
    for version in 1..100 {
        world.put(&thing("a").v(version).needs(&["b"]));
    }
    world.put(&thing("b"));
    assert_eq!(world.run(), ["apply b:1", "apply a:99"]);
}

#[test]
fn a_change_while_a_job_runs_takes_effect_when_it_has_ended() {
    let mut world = World::new();
    world.put(&thing("a"));
    assert_eq!(world.take(), ["apply a:1"]);
    world.put(&thing("a").v(2));
    world.put(&thing("a").v(3));
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.done("a").applied, Some(Some(thing("a").item())));
    assert_eq!(world.run(), ["apply a:3 (a:1)"]);
}

#[test]
fn a_delete_while_an_apply_runs_is_followed_by_a_remove() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.take();
    world.delete("a");
    world.fail("a", "no");
    assert_eq!(world.take(), ["remove a:1"], "it was begun, so it may be there");
    assert_eq!(world.done("a").applied, Some(None));
    assert_eq!(world.board.nodes.len(), 0);
}

#[test]
fn the_same_version_again_is_no_work() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    let version = world.board.version();
    world.put(&thing("a"));
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.board.version(), version);
}

#[test]
fn another_life_of_a_name_is_removed_first() {
    let mut world = World::new();
    world.put(&thing("a"));
    world.run();
    world.put(&thing("a").v(2).life(2));
    assert_eq!(world.run(), ["remove a:1", "apply a:2'"]);
}

#[test]
fn another_life_is_applied_over_the_old_one_if_new_ones_go_first() {
    let mut world = World::new();
    world.put(&thing("swap-a"));
    world.run();
    world.put(&thing("swap-a").v(2).life(2));
    assert_eq!(world.run(), ["apply swap-a:2' (swap-a:1)"]);
}

#[test]
fn another_life_waits_for_referrers_that_go() {
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b"))]);
    world.run();
    world.put(&thing("b").life(2));
    world.delete("a");
    assert_eq!(world.run(), ["remove a:1", "remove b:1", "apply b:1'"]);

    world.change([put(&thing("a").needs(&["b"]))]);
    world.run();
    world.change([put(&thing("b").life(3)), put(&thing("a").life(2).needs(&["b"]))]);
    assert_eq!(world.run(), ["remove a:1", "remove b:1'", "apply b:1'", "apply a:1'"]);
}

#[test]
fn another_life_is_applied_over_the_old_one_if_referrers_stay() {
    // Removing it first would wait for the referrer forever, and the referrer for it.
    let mut world = World::new();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b"))]);
    world.run();
    world.put(&thing("b").life(2));
    assert_eq!(world.run(), ["apply b:1' (b:1)"]);
}

#[test]
fn a_newer_version_of_a_referent_comes_before_its_referrers() {
    let mut world = World::new();
    world.put(&thing("b"));
    world.run();
    world.change([put(&thing("a").needs(&["b"])), put(&thing("b").v(2))]);
    assert_eq!(world.take(), ["apply b:2 (b:1)"]);
    world.fail("b", "no");
    assert_eq!(world.state("a"), "PENDING WAITING b");
    world.put(&thing("c").needs(&["b"]));
    world.put(&thing("d"));
    assert_eq!(world.run(), ["apply d:1"], "everything else goes on");
    world.wait_until_due();
    let mut rest = world.run();
    rest[1..].sort();
    assert_eq!(rest, ["apply b:2 (b:1)", "apply a:1", "apply c:1"]);
}

#[test]
fn a_referent_that_is_on_its_way_out_still_serves() {
    let mut world = World::new();
    world.put(&thing("b"));
    world.run();
    world.delete("b");
    world.put(&thing("a").needs(&["b"]));
    let jobs = world.jobs(1);
    assert_eq!(jobs[0].key, key("b"));
    assert_eq!(world.take(), [""; 0], "nothing is built on what is being removed");
    world.finish("b", Outcome::Dropped);
    assert_eq!(world.run(), ["remove b:1"]);
    assert_eq!(world.state("a"), "PENDING WAITING b");
}

#[test]
fn references_to_itself_and_to_kinds_that_nobody_handles_order_nothing() {
    let mut world = World::new();
    world.put(&thing("a").needs(&["a", "alien-b"]));
    assert_eq!(world.run(), ["apply a:1"]);
    world.delete("a");
    assert_eq!(world.run(), ["remove a:1"]);
}

#[test]
fn nothing_begins_while_held() {
    let mut world = World::new();
    world.board.hold(true);
    world.put(&thing("a"));
    assert_eq!(world.take(), [""; 0]);
    assert_eq!(world.state("a"), "PENDING QUEUED");
    world.board.hold(false);
    assert_eq!(world.run(), ["apply a:1"]);
}

#[test]
fn no_more_begins_than_there_is_room_for_and_first_come_is_first_served() {
    let mut world = World::new();
    for name in ["c", "a", "b"] {
        world.put(&thing(name));
    }
    assert_eq!(world.jobs(2).len(), 2);
    assert_eq!(world.state("c"), "PENDING RUNNING");
    assert_eq!(world.state("b"), "PENDING QUEUED");
    assert_eq!(world.jobs(0).len(), 0);
    assert_eq!(world.take(), ["apply b:1"]);
}

#[test]
fn explanations_name_the_chain() {
    let mut world = World::new();
    world.put(&thing("a").needs(&["b"]));
    world.put(&thing("b").needs(&["c"]));
    world.put(&thing("c"));
    world.take();
    world.fail("c", "disk full");
    let why = world.board.explain(&key("a")).unwrap();
    assert_eq!(why.chain, [key("b"), key("c")]);
    assert_eq!(
        why.sentence,
        "should be applied, and is pending (WAITING): needs demo.v1.thing/b; in the end for demo.v1.thing/c, which \
         should be applied, and has failed (ERROR): disk full"
    );
    assert_eq!(world.board.explain(&key("x")), None);
    assert_eq!(world.board.explain(&key("c")).unwrap().chain, []);
}

#[test]
fn two_referrers_of_a_referent_that_goes_are_both_named() {
    let mut world = World::new();
    world.change([put(&thing("b")), put(&thing("a1").needs(&["b"])), put(&thing("a2").needs(&["b"]))]);
    world.run();
    world.delete("b");
    assert_eq!(world.state("b"), "PENDING WAITING a1 a2");
    assert_eq!(world.exception("b").unwrap().message, "is still needed by demo.v1.thing/a1 and 1 more");
}
