//! Who gets which shards when somebody comes or goes (F60, F61, F62).

use std::time::Duration;

use crate::{
    Shard, Standing,
    instances::tests::world::{TTL, World},
};

fn moved(before: &[Option<String>], after: &[Option<String>]) -> Vec<usize> {
    (0..before.len()).filter(|index| before[*index] != after[*index]).collect()
}

#[tokio::test(start_paused = true)]
async fn one_instance_takes_all_shards_at_once() {
    let mut world = World::new(32, 1);
    world.start();
    let took = world.run_until(TTL, World::is_served).await;
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn instances_that_start_together_have_equal_parts() {
    for instances in 1..=5 {
        World::settled(32, instances).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_instance_takes_its_part_and_nothing_else_moves() {
    let mut world = World::settled(32, 3).await;
    let before = world.owners();
    world.unserved = Duration::ZERO;
    world.start();
    world.run(TTL / 3).await;
    world.assert_settled();
    let after = world.owners();
    let moved = moved(&before, &after);
    assert_eq!(moved.len(), 8);
    assert!(moved.iter().all(|index| after[*index].as_deref() == Some("i4")));
    // Each was without an instance from the end of its drain until the next look of the new one.
    assert!(world.unserved < Duration::from_millis(8 * 300), "{:?}", world.unserved);
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_killed_instance_are_served_again_after_its_leases_end() {
    let mut world = World::settled(32, 3).await;
    let before = world.owners();
    let killed = world.instances[1].id.clone();
    world.kill(1);
    let took = world.run_until(TTL + TTL / 3, World::is_served).await;
    assert!(took > TTL / 2, "nobody may act before the leases end: {took:?}");
    let after = world.owners();
    assert!(moved(&before, &after).iter().all(|index| before[*index].as_deref() == Some(&*killed)));
    world.assert_settled();
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_stops_hands_over_without_waiting_for_leases_to_end() {
    let mut world = World::settled(32, 3).await;
    let before = world.owners();
    world.unserved = Duration::ZERO;
    world.stop(1);
    let took = world.run_until(TTL / 3, |world| world.instances.len() == 2 && world.is_served()).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(world.unserved < Duration::from_millis(11 * 300), "{:?}", world.unserved);
    assert!(
        moved(&before, &world.owners())
            .iter()
            .all(|index| before[*index].as_deref() == Some("i2"))
    );
    world.run(TTL).await;
    world.assert_settled();
}

#[tokio::test(start_paused = true)]
async fn the_last_instance_stops_at_once() {
    let mut world = World::settled(32, 1).await;
    world.stop(0);
    let took = world.run_until(TTL, |world| world.instances.is_empty()).await;
    assert!(took < Duration::from_millis(300), "{took:?}");
    assert!((0..32).all(|index| world.table.holder(Shard::new(index)).is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_rolling_upgrade_leaves_every_shard_for_a_moment_only() {
    let mut world = World::settled(32, 3).await;
    world.unserved = Duration::ZERO;
    let grants = world.table.grants();
    for _ in 0..3 {
        world.start();
        world.run(TTL / 3).await;
        world.stop(0);
        world.run(TTL / 3).await;
        assert_eq!(world.instances.len(), 3);
        world.assert_settled();
    }
    let moves = u32::try_from(world.table.grants() - grants).unwrap();
    // To each new instance 8 of 32, and from each old one its 8.
    assert!(moves <= 3 * (8 + 8), "{moves}");
    assert!(world.unserved < moves * Duration::from_millis(300), "{:?} for {moves} moves", world.unserved);
}

#[tokio::test(start_paused = true)]
async fn a_reaction_may_take_longer_than_a_lease_lasts() {
    // H14: a lock that ended while its holder was still busy.
    let mut world = World::new(4, 1);
    world.drain = 3 * TTL;
    world.start();
    world.run(TTL).await;
    world.start();
    world.run(2 * TTL).await;
    let status = world.instances[0].shares.status();
    assert_eq!(status.shards.iter().filter(|shard| shard.draining).count(), 2);
    assert_eq!(world.instances[1].shares.status().standing, Standing::Standby);
    assert!(world.is_served());
    world.run(2 * TTL).await;
    world.assert_settled();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_does_not_drain_in_time_is_left_to_its_lease() {
    let mut world = World::new(4, 1);
    world.drain = 10 * TTL;
    world.start();
    world.run(TTL).await;
    world.stop(0);
    let took = world.run_until(TTL, |world| world.instances.is_empty()).await;
    assert!(took <= Duration::from_millis(10_020), "{took:?}");
    assert!((0..4).all(|index| world.table.holder(Shard::new(index)).is_some()));
}
