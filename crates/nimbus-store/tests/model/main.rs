//! The store against a naive model, under random transactions, readers, syncs, cuts and trims.

#![allow(clippy::print_stdout, reason = "a run says what it covered")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

mod bounds;
mod finalizers;
mod guarantees;
mod leases;
mod model;
mod reach;
mod reader;
mod world;

use proptest::test_runner::{Config, RngAlgorithm, TestRunner};

use crate::{reader::coverage, world::World};

/// Cases of the state machine in one run, about a minute; `PROPTEST_CASES` overrides it.
const CASES: u32 = 1500;

/// From this many cases on, a run that never saw one of [`WANTED`] is not worth its name.
const ENOUGH: u32 = 500;

/// Things that must happen in the cases of one run.
const WANTED: [&str; 33] = [
    "change of scope",
    "change of scope restarted",
    "commit",
    "cycle",
    "deleting",
    "epoch",
    "equal",
    "fenced",
    "finalized",
    "foreign",
    "group of many frames",
    "group restarted",
    "group with removals",
    "marked",
    "no such object",
    "no-op",
    "not ahead",
    "observed ahead",
    "precondition",
    "put of a referrer and its referent",
    "removal of a referrer and its referent",
    "resume",
    "resume refused",
    "snapshot of a bus that is being refilled",
    "snapshot of some buckets",
    "snapshot restarted",
    "snapshot within a session",
    "stale generation",
    "sweep",
    "sweep that marks",
    "twice",
    "unfinished",
    "wait",
];

/// Cases with a collection in a file in one run: each write waits for the disk. `PROPTEST_CASES` / 30 overrides it.
const DURABLE_CASES: u32 = 50;

fn run(cases: u32, durable: bool) {
    // Without optimisation, the default generator takes a third of the time.
    let rng_algorithm = RngAlgorithm::XorShift;
    let config =
        Config { cases, rng_algorithm, max_shrink_iters: 20_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&(world::setup(durable), world::steps(1..300)), |(setup, steps)| {
        let mut world = World::new(setup);
        steps.iter().for_each(|step| world.step(step));
        world.finish();
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn given_cases() -> Option<u32> {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok())
}

#[test]
fn every_reader_holds_what_the_model_says_at_every_commit() {
    let cases = given_cases().unwrap_or(CASES);
    run(cases, false);
    let coverage = coverage();
    println!("{cases} cases: {coverage:#?}");
    if cases >= ENOUGH {
        let missing: Vec<_> = WANTED.iter().filter(|what| !coverage.contains_key(*what)).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

#[test]
fn every_reader_holds_what_the_model_says_although_the_collection_is_reopened() {
    run(given_cases().map_or(DURABLE_CASES, |cases| cases.div_ceil(30)), true);
}
