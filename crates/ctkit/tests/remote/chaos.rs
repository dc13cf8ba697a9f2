//! Random writes, cuts and restarts: the view ends equal to the store, and never goes back.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::time::timeout;

use crate::world::{World, delete, draft, put};

const SEEDS: u64 = 8;
const STEPS: usize = 120;

#[tokio::test(start_paused = true)]
async fn a_view_ends_equal_to_the_store_whatever_happens_on_the_way() {
    for seed in 0..SEEDS {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = World::synced().await;
    let mut watcher = world.watch();
    for _ in 0..STEPS {
        match rng.random_range(0..20) {
            0..10 => {
                let (name, value) = (rng.random_range(0..15), rng.random_range(0..4));
                world.write(vec![put(&format!("o{name}"), &format!("{value}"))]);
            }
            10..13 => drop(world.write(vec![delete(&format!("o{}", rng.random_range(0..15)))])),
            13..16 => world.net.cut(),
            // Whoever reads now and then sees what was meanwhile as one change.
            16..19 => {
                let wait = Duration::from_millis(rng.random_range(0..400));
                while timeout(wait, watcher.step()).await.is_ok() {}
            }
            _ => {
                world.kill();
                world.begin();
                let kept = (0..15).filter(|_| rng.random_bool(0.7)).map(|name| draft(&format!("o{name}"), "1"));
                let kept: Vec<_> = kept.collect();
                world.sync(&kept).await;
            }
        }
    }
    watcher.quiet().await;
    assert_eq!(watcher.lists, 1, "it is listed once, whatever happens");
    assert_eq!(watcher.values(), world.values(), "seed {seed}");
}
