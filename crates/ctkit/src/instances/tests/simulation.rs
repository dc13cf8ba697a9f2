//! Random histories: whatever happens, no two instances act on one shard, and in the end each shard has one.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::instances::tests::{
    link::Weather,
    world::{TTL, World},
};

/// What can happen between two moments.
fn happen(world: &mut World, rng: &mut SmallRng) {
    let count = world.instances.len();
    let any = rng.random_range(0..count.max(1));
    match rng.random_range(0..10) {
        0 | 1 if count < 5 => {
            world.start();
        }
        2 if count > 0 => world.stop(any),
        3 if count > 0 => world.kill(any),
        4 if count > 0 => world.instances[any].pause.set(true),
        5 | 6 if count > 0 => world.instances[any].pause.set(false),
        7 if count > 0 => world.instances[any].link.set(Weather { cut: true, ..Weather::default() }),
        8 if count > 0 => {
            // Some requests arrive when nobody thinks of them any more.
            let longest = if rng.random_bool(0.3) { 3 * TTL } else { TTL / 4 };
            let delay = longest.mul_f64(rng.random());
            let (lost_requests, lost_answers) = (rng.random_range(0.0..0.4), rng.random_range(0.0..0.4));
            world.instances[any].link.set(Weather { cut: false, lost_requests, lost_answers, delay });
        }
        9 if count > 0 => world.instances[any].link.set(Weather::default()),
        _ => {}
    }
}

async fn simulate(seed: u64, steps: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = World::new([1, 5, 8, 32][rng.random_range(0..4)], seed);
    // All clocks are the same here, so that it must be safe without a margin.
    world.margin = if rng.random_bool(0.5) { Duration::ZERO } else { TTL / 5 };
    // The table itself looks at the instants that matter, when a shard changes hands.
    world.tick = Duration::from_millis(200);
    for _ in 0..steps {
        happen(&mut world, &mut rng);
        world.drain = Duration::from_millis(rng.random_range(0..3000));
        // Mostly shorter than anything takes, sometimes longer than a lease lasts.
        let longest = if rng.random_bool(0.1) { 2 * TTL } else { TTL / 10 };
        world.run(longest.mul_f64(rng.random())).await;
    }

    for process in &world.instances {
        process.pause.set(false);
        process.link.set(Weather::default());
    }
    world.start();
    world.run(8 * TTL).await;
    assert!((0..world.instances.len()).all(|index| !world.is_stopping(index)), "who stops is gone by now");
    world.assert_settled();
    let (owners, grants) = (world.owners(), world.table.grants());
    world.run(4 * TTL).await;
    assert_eq!((world.owners(), world.table.grants()), (owners, grants), "nothing moves without a cause");
}

#[tokio::test(start_paused = true)]
async fn no_two_instances_ever_act_on_one_shard_and_in_the_end_each_has_one() {
    for seed in 0..30 {
        tokio::spawn(simulate(seed, 150))
            .await
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
