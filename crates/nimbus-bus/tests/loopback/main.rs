//! A real bus on loopback, clients that are plain loops, random writes and faults: do the invariants hold?
//!
//! Every state that the bus has had is kept, so that what a client holds can be compared with what it should hold at
//! the very revision that it was told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod client;
mod embedded;
mod finalizers;
mod fleet;
mod leases;
mod references;
mod scenarios;
mod scripted;
mod world;

use proptest::{prelude::*, test_runner::Config};

use crate::world::{Step, World, steps};

/// Cases of each property; `PROPTEST_CASES` sets another number.
const CASES: u32 = 60;

fn run(steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new().await;
        for step in steps {
            world.take(step).await;
        }
        world.converge().await;
    });
}

proptest! {
    #![proptest_config(Config { cases: CASES, max_shrink_iters: 200, ..Config::default() })]

    /// Invariants 1 to 5 and 11: whatever is written, cut, stalled, rescoped and restarted, every client holds exactly
    /// its part of the collection at every position that it is told, and all of it in the end.
    #[test]
    fn every_client_holds_exactly_its_feed_at_every_position(steps in steps()) {
        run(steps);
    }
}
