//! What the program says: a line of JSON for programs, a table for people.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one place where results are printed")]

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// One round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Round {
    system: Cow<'static, str>,
    objects: u64,
    seconds: f64,
    objects_per_second: f64,
    cpu_seconds: f64,
    rss_before_kib: u64,
    peak_rss_kib: u64,
}

// === impl Round ===

impl Round {
    pub(crate) fn new(system: &'static str, objects: u64, took: Duration, before: Usage, after: Usage) -> Self {
        Self {
            system: Cow::Borrowed(system),
            objects,
            seconds: took.as_secs_f64(),
            objects_per_second: objects as f64 / took.as_secs_f64(),
            cpu_seconds: (after.cpu - before.cpu).as_secs_f64(),
            rss_before_kib: before.rss_kib,
            peak_rss_kib: after.peak_kib,
        }
    }

    /// The middle of each figure.
    pub(crate) fn median(rounds: &[Self]) -> Option<Self> {
        let middle = |figure: &dyn Fn(&Self) -> f64| {
            let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let first = rounds.first()?;
        Some(Self {
            seconds: middle(&|round| round.seconds),
            objects_per_second: middle(&|round| round.objects_per_second),
            cpu_seconds: middle(&|round| round.cpu_seconds),
            rss_before_kib: middle(&|round| round.rss_before_kib as f64) as u64,
            peak_rss_kib: middle(&|round| round.peak_rss_kib as f64) as u64,
            ..first.clone()
        })
    }

    fn least_cpu(rounds: &[Self]) -> f64 {
        rounds.iter().map(|round| round.cpu_seconds).fold(f64::INFINITY, f64::min)
    }
}

/// Prints one result.
pub(crate) fn print(round: &Round) {
    println!("{}", serde_json::to_string(round).expect("numbers and text are JSON"));
}

/// Prints the medians of several systems as lines of JSON, as a table, and how the others compare with the first.
pub(crate) fn table(systems: &[Vec<Round>]) {
    let medians: Vec<_> = systems.iter().filter_map(|rounds| Some((rounds, Round::median(rounds)?))).collect();
    let Some((_, base)) = medians.first() else { return };
    medians.iter().for_each(|(_, round)| print(round));
    println!("{:16} {:>10} {:>8} {:>8} {:>8} {:>10}", "system", "objects/s", "seconds", "CPU-s", "least", "peak MiB");
    for (rounds, round) in &medians {
        println!(
            "{:16} {:>10.0} {:>8.3} {:>8.2} {:>8.2} {:>10.1}",
            round.system,
            round.objects_per_second,
            round.seconds,
            round.cpu_seconds,
            Round::least_cpu(rounds),
            round.peak_rss_kib as f64 / 1024.0,
        );
    }
    for (_, round) in medians.iter().skip(1) {
        println!(
            "{} is {:.2} times as fast as {}, with {:.2} of its CPU and {:.2} of its memory",
            round.system,
            round.objects_per_second / base.objects_per_second,
            base.system,
            round.cpu_seconds / base.cpu_seconds,
            round.peak_rss_kib as f64 / base.peak_rss_kib as f64,
        );
    }
}

/// Says why there are no results.
pub(crate) fn complain(error: &anyhow::Error) {
    eprintln!("nimbus-bench-kube: {error:#}");
}
