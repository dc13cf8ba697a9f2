//! What an instance does when it is cut off or was stopped for a while (H13).

use std::time::Duration;

use crate::{
    Shard, Standing,
    instances::tests::{
        link::Weather,
        world::{TTL, World},
    },
};

const CUT: Weather = Weather { cut: true, lost_requests: 0.0, lost_answers: 0.0, delay: Duration::ZERO };

#[tokio::test(start_paused = true)]
async fn a_paused_leader_that_returns_may_not_act_before_it_does_anything() {
    // H13, scenario 10: the leader is stopped for longer than its lease lasts, and another one is elected.
    let mut world = World::settled(1, 2).await;
    let shard = Shard::new(0);
    let leader = usize::from(world.instances[0].shares.permit(shard).is_none());
    let old = world.instances[leader].shares.permit(shard).unwrap().into_guards().remove(0);
    world.instances[leader].pause.set(true);
    world.run(2 * TTL).await;
    let new = world.instances[1 - leader].shares.permit(shard).unwrap().into_guards().remove(0);
    assert!(new.token > old.token);

    world.instances[leader].pause.set(false);
    // Nothing of it has run yet.
    assert_eq!(world.instances[leader].shares.permit(shard), None);
    assert!(!world.table.accepts(&old), "its writes are refused as well");
    world.run(TTL).await;
    assert_eq!(world.instances[leader].shares.status().standing, Standing::Standby);
    assert_eq!(world.instances[1 - leader].shares.permit(shard).unwrap().guard(), Some(&new));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_cut_off_stops_before_others_may_begin() {
    let mut world = World::settled(8, 2).await;
    world.instances[0].link.set(CUT);
    let stopped = world.run_until(TTL, |world| world.instances[0].shares.status().shards.is_empty()).await;
    // That its shards are not in other hands at that time is checked at every tick.
    assert!(stopped <= TTL - TTL / 5, "{stopped:?}");
    assert!(world.instances[0].shares.status().trouble.is_some());
    world.run_until(TTL, World::is_served).await;
    assert_eq!(world.instances[1].shares.status().shards.len(), 8);

    world.instances[0].link.set(Weather::default());
    world.run(TTL).await;
    world.assert_settled();
    assert_eq!(world.instances[0].shares.status().trouble, None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_table_that_is_away_for_a_moment_is_not_noticed() {
    let mut world = World::settled(8, 2).await;
    let (grants, before) = (world.table.grants(), world.owners());
    for process in &world.instances {
        process.link.set(CUT);
    }
    world.unserved = Duration::ZERO;
    world.run(TTL / 3).await;
    for process in &world.instances {
        process.link.set(Weather::default());
    }
    world.run(TTL).await;
    assert_eq!((world.table.grants(), world.owners()), (grants, before));
    assert_eq!(world.unserved, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn stopping_takes_no_longer_when_the_lease_table_is_away() {
    let mut world = World::settled(8, 2).await;
    world.instances[0].link.set(CUT);
    world.stop(0);
    let took = world.run_until(TTL, |world| world.instances.len() == 1).await;
    assert!(took <= Duration::from_millis(10_020), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_table_that_panics_is_one_that_does_not_answer() {
    let mut world = World::settled(8, 1).await;
    world.instances[0].link.panic_from_now_on(true);
    world.run(2 * TTL).await;
    assert_eq!(world.instances[0].shares.status().standing, Standing::Joining);
    world.instances[0].link.panic_from_now_on(false);
    world.run(TTL).await;
    world.assert_settled();
}
