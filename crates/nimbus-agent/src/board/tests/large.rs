//! Many objects. These tests only have to end.

use nimbus_core::Revision;

use crate::{
    board::{
        Change, Outcome, Work,
        tests::world::{World, delete, key, put, thing},
    },
    handler::Status,
};

const MANY: usize = 20_000;

fn run(world: &mut World) -> usize {
    let mut done = 0;
    loop {
        let jobs = world.board.take(64, world.now);
        if jobs.is_empty() {
            return done;
        }
        for job in jobs {
            let outcome = match job.work {
                Work::Remove { .. } => Outcome::Removed,
                _ => Outcome::Applied(Status::applied()),
            };
            world.board.finish(&job.key, outcome, world.now);
            done += 1;
        }
    }
}

fn change(world: &mut World, changes: Vec<Change>) {
    world.board.change(changes, Revision(0), world.now);
}

fn link(n: usize) -> Change {
    let name = |n| format!("n{n}");
    if n == 0 { put(&thing(&name(0))) } else { put(&thing(&name(n)).needs(&[&name(n - 1)])) }
}

#[test]
fn a_chain_in_any_order() {
    let length = MANY * 5;
    let mut world = World::new();
    change(&mut world, (0..length).rev().map(link).collect());
    assert_eq!(run(&mut world), length);
    assert!(world.board.is_settled());
    change(&mut world, (0..length).map(|n| delete(&format!("n{n}"))).collect());
    assert_eq!(run(&mut world), length);
    assert_eq!(world.board.nodes.len(), 0);
}

#[test]
fn a_chain_that_comes_one_by_one_and_whose_beginning_comes_last() {
    let mut world = World::new();
    for n in 1..MANY {
        change(&mut world, vec![link(n)]);
    }
    assert_eq!(run(&mut world), 0);
    assert_eq!(world.board.counts().waiting, MANY - 1);
    change(&mut world, vec![link(0)]);
    assert_eq!(run(&mut world), MANY);
}

#[test]
fn a_cycle_of_all() {
    let mut world = World::new();
    let mut changes: Vec<_> = (1..MANY).map(link).collect();
    changes.push(put(&thing("n0").needs(&[&format!("n{}", MANY - 1)])));
    change(&mut world, changes);
    assert_eq!(world.board.counts().failed, MANY);
    assert!(world.state("n5").starts_with("FAILED CYCLE"));
    change(&mut world, vec![put(&thing("n0").v(2))]);
    assert_eq!(run(&mut world), MANY);
}

#[test]
fn a_star_of_referrers() {
    let mut world = World::new();
    change(&mut world, (0..MANY).map(|n| put(&thing(&format!("n{n}")).needs(&["hub"]))).collect());
    change(&mut world, vec![put(&thing("hub"))]);
    assert_eq!(run(&mut world), MANY + 1);
    change(&mut world, vec![delete("hub")]);
    for n in 0..MANY {
        change(&mut world, vec![delete(&format!("n{n}"))]);
        run(&mut world);
    }
    assert_eq!(world.board.nodes.len(), 0);
    assert!(world.board.explain(&key("hub")).is_none());
}

#[test]
fn a_group_of_many_puts_and_removals() {
    for kind in ["swap", "excl"] {
        let mut world = World::new();
        let name = |side: &str, n: usize| format!("{kind}-{side}{n}");
        change(&mut world, (0..MANY / 2).map(|n| put(&thing(&name("old", n)))).collect());
        run(&mut world);
        let puts = (0..MANY / 2).map(|n| put(&thing(&name("new", n))));
        change(&mut world, puts.chain((0..MANY / 2).map(|n| delete(&name("old", n)))).collect());
        assert_eq!(run(&mut world), MANY);
        assert_eq!((world.board.barriers.len(), world.board.nodes.len()), (0, MANY / 2));
    }
}

#[test]
fn a_large_group_in_which_each_removal_frees_the_next() {
    let mut world = World::new();
    let old = |n: usize| format!("excl-{n}");
    let link = |n: usize| if n == 0 { thing(&old(0)) } else { thing(&old(n)).needs(&[&old(n - 1)]) };
    change(&mut world, (0..MANY / 2).map(|n| put(&link(n))).collect());
    run(&mut world);
    let puts = (0..MANY / 2).map(|n| put(&thing(&format!("excl-new{n}"))));
    change(&mut world, puts.chain((0..MANY / 2).map(|n| delete(&old(n)))).collect());
    assert_eq!(run(&mut world), MANY);
}
