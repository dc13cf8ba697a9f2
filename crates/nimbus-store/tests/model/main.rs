//! The store against a naive model, under random transactions, readers, syncs, cuts and trims.

mod model;
mod reader;
mod world;

use proptest::prelude::*;

/// Cases of the state machine in one run; `PROPTEST_CASES` overrides it.
const CASES: u32 = 500;

fn config(cases: u32) -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: given.unwrap_or(cases),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn every_reader_holds_what_the_model_says_at_every_commit(
        setup in world::setup(),
        steps in world::steps(1..300),
    ) {
        let mut world = world::World::new(setup);
        steps.iter().for_each(|step| world.step(step));
        world.finish();
    }
}
