//! Seeds: everything at once, on a network and a clock that follow from a number.
//!
//! These only start the program `nimbus-sim`, and have nothing of it in them: it makes the system's clocks stand still, with
//! which a test program would wait for its tests in a busy loop, and in a program with threads of its own, one of these could
//! take a number that follows from a seed.

#![allow(clippy::print_stdout, reason = "what a seed did is read by whoever started it")]

use std::{env, process::Command};

/// Only this one.
const SEED: &str = "NIMBUS_SIM_SEED";

/// How long to begin with new seeds.
const SECONDS: &str = "NIMBUS_SIM_SECONDS";

/// Enough to find what is broken badly; `tests/run` gives more.
const DEFAULT_SECONDS: &str = "10";

/// Seeds that once failed, each with its story.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sim/seeds");

/// Runs the program with some arguments.
fn run(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_nimbus-sim"))
        .args(arguments)
        .output()
        .expect("cargo has built it");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{errors}{text}");
    // The last line says which seed failed, and how to run it again.
    let last: Vec<_> = text.lines().rev().take(2).collect();
    assert!(output.status.success(), "{}\n{}", last.get(1).unwrap_or(&""), last.first().unwrap_or(&""));
}

#[test]
fn whatever_happens_every_promise_is_kept() {
    match env::var(SEED) {
        Ok(seed) => run(&["once", "--seed", &seed, "--minimise"]),
        // New ones every time.
        Err(_) => {
            let seconds = env::var(SECONDS).unwrap_or_else(|_| DEFAULT_SECONDS.to_owned());
            run(&["seeds", "--minimise", "--seconds", &seconds]);
        }
    }
}

/// A process that could not have the directory that it wanted, because three others had it, asked the system for a number,
/// which followed from the seed like all others; whatever came after was another run. And wherever many readers were woken
/// at once, the order followed from the number of processors.
#[test]
fn the_same_seed_is_the_same_run() {
    run(&["repeat"]);
}

#[test]
fn no_seed_that_once_failed_fails_again() {
    run(&["seeds", "--file", SEEDS]);
}
