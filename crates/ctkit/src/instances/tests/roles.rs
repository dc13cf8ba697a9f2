//! Leaders, those who stand by, and those who are alone.

use std::{sync::Arc, time::Duration};

use nimbus_core::{Kind, ObjectKey};
use tokio::sync::oneshot;

use crate::{
    InstanceId, Instances, InstancesConfig, InstancesError, NoLeases, Shard, ShardEvent, Standing,
    instances::tests::{
        lease_table::CONTROLLER,
        link::Link,
        world::{TTL, World},
    },
};

#[tokio::test(start_paused = true)]
async fn one_of_many_leads_and_the_others_stand_by() {
    let mut world = World::settled(1, 3).await;
    let mut standings: Vec<_> = world.instances.iter().map(|process| process.shares.status().standing).collect();
    standings.sort_by_key(|standing| *standing == Standing::Standby);
    assert_eq!(standings, [Standing::Active, Standing::Standby, Standing::Standby]);
    for process in &world.instances {
        process.shares.joined().await;
        assert_eq!(process.shares.status().members, ["i1", "i2", "i3"].map(InstanceId::new));
    }
    let before = world.owners();
    world.run(10 * TTL).await;
    assert_eq!(world.owners(), before, "a leader stays the leader");
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_may_do_everything_without_a_lease() {
    let (shares, mut events, keeper) = Instances::alone().build(Arc::new(NoLeases)).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let keeper = tokio::spawn(keeper.run_until(async { stopped.await.unwrap() }));
    let Some(ShardEvent::Gained(shard, permit)) = events.next().await else { panic!("nothing gained") };
    assert_eq!(permit.guard(), None);
    let key = ObjectKey::new(Kind::new("demo.v1.Policy").unwrap(), "", "a").unwrap();
    assert_eq!(shares.shard_of(&key), shard);
    assert_eq!(shares.permit(shard).unwrap().into_guards(), []);
    assert_eq!(shares.status().standing, Standing::Active);

    stop.send(()).unwrap();
    assert_eq!(events.next().await, Some(ShardEvent::Drain(shard)));
    assert!(shares.permit(shard).is_some(), "what runs may end");
    events.drained(shard);
    keeper.await.unwrap();
    assert_eq!((shares.permit(shard), shares.status().standing), (None, Standing::Left));
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn who_is_told_late_is_told_what_is_true_now() {
    let world = World::new(2, 1);
    let link = Link::new(world.table.clone(), 1);
    let (shares, mut events, keeper) = Instances::sharded(CONTROLLER).shards(2).build(link).unwrap();
    let keeper = tokio::spawn(keeper.run_until(std::future::pending()));
    shares.joined().await;
    tokio::time::sleep(TTL).await;
    for index in 0..2 {
        let event = events.next().await;
        assert!(matches!(event, Some(ShardEvent::Gained(shard, _)) if shard == Shard::new(index)), "{event:?}");
    }
    keeper.abort();
    assert_eq!(events.next().await, Some(ShardEvent::Lost(Shard::new(0))));
    assert_eq!(events.next().await, Some(ShardEvent::Lost(Shard::new(1))));
    assert_eq!(events.next().await, None);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let check = |config: InstancesConfig, expected: InstancesError| {
        assert_eq!(Instances::new(config).build(Arc::new(NoLeases)).map(drop), Err(expected));
    };
    let config = || InstancesConfig::new("a");
    check(InstancesConfig { shards: 0, ..config() }, InstancesError::Shards(0));
    check(InstancesConfig { shards: 1025, ..config() }, InstancesError::Shards(1025));
    let instance = Some(InstanceId::new("x"));
    check(InstancesConfig { instance, ..InstancesConfig::new("a b") }, InstancesError::Name("a b.member-x".into()));
    let instance = Some(InstanceId::new("a/b"));
    check(InstancesConfig { instance, ..config() }, InstancesError::Name("a.member-a/b".into()));
    let (ttl, margin) = (Duration::from_secs(2), Duration::from_millis(1001));
    check(InstancesConfig { ttl, margin: Some(margin), ..config() }, InstancesError::Times { ttl, margin });
    let (ttl, margin) = (Duration::from_millis(100), Duration::from_millis(20));
    check(InstancesConfig { ttl, ..config() }, InstancesError::Times { ttl, margin });
}
