//! The real bus, in memory or on a disk that takes its time.

use std::time::Duration;

use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::Epoch;
use rand::RngExt as _;
use tokio::time::sleep;

use crate::{
    hosts::keep_jumping,
    net,
    setup::{API, BUS},
    world::{World, millis},
};

/// Serves until it is killed, or told to stop.
pub(crate) async fn run(world: World, name: &'static str) -> turmoil::Result {
    let mut rng = world.rng(name);
    let setup = world.lock().setup.clone();
    let mut config = Config::new(Epoch(rng.random()), rng.random());
    config.bookmark_interval = Duration::from_secs(2);
    config.keepalive = Duration::from_secs(4);
    config.drain = Duration::from_millis(800);
    config.lost_after = Duration::from_secs(10);
    config.limits.frame_bytes = setup.frame_bytes;
    config.limits.group_bytes = setup.group_bytes;
    config.limits.store.tombstones = setup.tombstones;
    let durable = setup.durable || name == API;
    let bus = if durable {
        let (bus, mut disk) =
            Bus::open_driven(&setup.directory.join(format!("{name}.redb")), config, Metrics::default())?;
        let slow = crate::setup::pick(&mut rng, &[1, 20, 200]);
        tokio::task::spawn_local(async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                if disk.write() {
                    sleep(millis(&mut rng, 0, slow)).await;
                    disk.finish();
                    sleep(millis(&mut rng, 0, slow)).await;
                }
            }
        });
        bus
    } else {
        Bus::new(config, Metrics::default())
    };
    let state = bus.store().state();
    world.note(name, format!("starts with epoch {} at revision {}", state.epoch(), state.head()));
    drop(state);
    tokio::spawn(keep_jumping(world.clone(), name.to_owned()));
    if name == API {
        tokio::spawn(show(world.clone(), bus.clone()));
    }
    let stop = {
        let world = world.clone();
        async move {
            while !(world.lock().stopping && name == BUS) {
                sleep(Duration::from_millis(20)).await;
            }
        }
    };
    bus.serve(net::listen().await?, stop).await?;
    world.note(name, "has stopped");
    Ok(())
}

/// Shows to those who judge controllers what users wrote, and who may act on it.
async fn show(world: World, bus: Bus) {
    loop {
        let leases = bus.leases("policies.shard-").await.unwrap_or_default();
        {
            let mut world = world.lock();
            world.leader = leases.first().map(|lease| lease.holder.to_string());
            world.api = Some(bus.store().state());
        }
        sleep(Duration::from_millis(20)).await;
    }
}
