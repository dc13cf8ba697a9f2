//! Seeds: everything at once, on a network and a clock that follow from a number.
//!
//! A process can run one seed, so this program starts itself again for each of them. What is said by a seed that failed
//! begins with what the seed decided and what went wrong; `NIMBUS_SIM_SEED` runs it once more.

#![allow(clippy::print_stdout, reason = "what a seed did is read by whoever started it")]

use std::{env, process::Command, thread, time::Duration};

use nimbus_sim::{Report, VIOLATION, real_clock};

/// The seed that the process is to run, in which `one_seed_in_a_process_of_its_own` is more than a formality.
const CHILD: &str = "NIMBUS_SIM_CHILD";

/// Only this seed.
const SEED: &str = "NIMBUS_SIM_SEED";

/// How long to begin with new seeds.
const SECONDS: &str = "NIMBUS_SIM_SECONDS";

/// Enough to find what is broken badly; `tests/run` gives more.
const DEFAULT_SECONDS: u64 = 10;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, expected a number")))
}

fn child(seed: u64) -> Command {
    let mut command = Command::new(env::current_exe().expect("a program knows where it is"));
    command
        .args(["--exact", "one_seed_in_a_process_of_its_own", "--nocapture"])
        .env(CHILD, seed.to_string());
    command
}

fn jobs() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// Runs seeds, and fails with all that the first one said that failed.
fn check(seeds: impl Iterator<Item = u64>) -> Vec<Report> {
    let mut reports = Vec::new();
    nimbus_sim::each(seeds, jobs(), child, |report| {
        let fails = report.violation.is_some();
        reports.push(report);
        !fails
    })
    .expect("programs can be started");
    let (events, faults) = reports.iter().fold((0, 0), |sum, one| (sum.0 + one.events, sum.1 + one.faults));
    println!("{} seeds, {events} events, {faults} faults", reports.len());
    if let Some(Report { seed, text, violation: Some(violation), .. }) = reports.last() {
        panic!("{text}\nseed {seed} fails: {violation}\nit fails again with {SEED}={seed}");
    }
    reports
}

#[test]
fn one_seed_in_a_process_of_its_own() {
    let Some(seed) = number(CHILD) else { return };
    let outcome = nimbus_sim::once(seed).unwrap();
    println!();
    outcome.story.iter().for_each(|line| println!("{line}"));
    println!("{outcome}");
    if let Some(violation) = &outcome.violation {
        println!("{VIOLATION}{violation}");
        panic!("{violation}");
    }
}

#[test]
fn whatever_happens_every_promise_is_kept() {
    if let Some(seed) = number(SEED) {
        check(std::iter::once(seed));
        return;
    }
    let (begun, limit) = (real_clock(), Duration::from_secs(number(SECONDS).unwrap_or(DEFAULT_SECONDS)));
    // New ones every time.
    let first = u64::from(rand::random::<u32>());
    println!("seeds from {first} on");
    check((first..).take_while(|_| real_clock() - begun < limit));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let seed = u64::from(rand::random::<u32>());
    let reports = check([seed, seed].into_iter());
    assert_eq!(reports[0].fingerprint, reports[1].fingerprint, "seed {seed}");
    assert!(reports[0].events > 0, "seed {seed}");
}
