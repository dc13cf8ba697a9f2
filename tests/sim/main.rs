//! Seeds: everything at once, on a network and a clock that follow from a number.
//!
//! A process can run one seed, so this program starts itself again for each of them. What is said by a seed that failed
//! begins with what the seed decided and what went wrong, and ends with the smallest schedule of faults with which it still
//! fails; `NIMBUS_SIM_SEED` runs it once more.

#![allow(clippy::print_stdout, reason = "what a seed did is read by whoever started it")]

use std::{env, iter, process::Command, str::FromStr, thread, time::Duration};

use nimbus_sim::{Case, Report, Tally, VIOLATION, real_clock};

/// The case that the process is to run, in which `one_seed_in_a_process_of_its_own` is more than a formality.
const CHILD: &str = "NIMBUS_SIM_CHILD";

/// Only this one.
const SEED: &str = "NIMBUS_SIM_SEED";

/// How long to begin with new seeds.
const SECONDS: &str = "NIMBUS_SIM_SECONDS";

/// Enough to find what is broken badly; `tests/run` gives more.
const DEFAULT_SECONDS: u64 = 10;

/// How long to look for less of what fails.
const MINIMISES: Duration = Duration::from_secs(90);

/// Seeds that once failed, each with its story.
const SEEDS: &str = include_str!("seeds");

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, expected a number")))
}

fn child(case: &Case) -> Command {
    let mut command = Command::new(env::current_exe().expect("a program knows where it is"));
    command
        .args(["--exact", "one_seed_in_a_process_of_its_own", "--nocapture"])
        .env(CHILD, case.to_string());
    command
}

fn jobs() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}

/// Runs cases, and fails with all that the first one said that failed.
fn check(cases: impl Iterator<Item = Case>) -> Vec<Report> {
    let (mut reports, mut tally) = (Vec::new(), Tally::default());
    nimbus_sim::each(cases, jobs(), child, |mut report| {
        let fails = report.violation.is_some();
        tally.add(&report);
        if !fails {
            // There may be many of them.
            report.text.clear();
        }
        reports.push(report);
        !fails
    })
    .expect("programs can be started");
    println!("{tally}");
    let Some(failed) = reports.last().filter(|report| report.violation.is_some()) else { return reports };
    println!("{}", failed.text);
    let (case, violation) = (failed.case.clone(), failed.violation.clone().unwrap_or_default());
    println!("seed {case} fails: {violation}\nlooking for less of what fails");
    let smallest = nimbus_sim::minimise(failed.clone(), jobs(), MINIMISES, child).expect("programs can be started");
    panic!(
        "{smallest}\nseed {case} fails: {violation}\n\
         again: {SEED}={case} cargo nextest run --test sim whatever_happens\n\
         and with everything that happened: cargo run --release -p nimbus-sim -- once --seed {case} --trace"
    );
}

#[test]
fn one_seed_in_a_process_of_its_own() {
    let Some(case) = variable::<Case>(CHILD) else { return };
    let outcome = nimbus_sim::once(&case).unwrap();
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
    if let Some(case) = variable(SEED) {
        check(iter::once(case));
        return;
    }
    let (begun, limit) = (real_clock(), Duration::from_secs(variable(SECONDS).unwrap_or(DEFAULT_SECONDS)));
    // New ones every time.
    let first = u64::from(rand::random::<u32>());
    println!("seeds from {first} on, for {} s", limit.as_secs());
    check((first..).map(Case::whole).take_while(|_| real_clock() - begun < limit));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let case = Case::whole(u64::from(rand::random::<u32>()));
    let reports = check([case.clone(), case.clone()].into_iter());
    assert_eq!(reports[0].fingerprint, reports[1].fingerprint, "seed {case}");
    assert!(reports[0].events > 0, "seed {case}");
}

#[test]
fn no_seed_that_once_failed_fails_again() {
    let lines = SEEDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |line: &str| line.split_whitespace().next().and_then(|word| word.parse().ok());
    let cases: Vec<Case> = lines.map(|line| case(line).unwrap_or_else(|| panic!("no seed: {line}"))).collect();
    assert!(!cases.is_empty());
    check(cases.into_iter());
}
