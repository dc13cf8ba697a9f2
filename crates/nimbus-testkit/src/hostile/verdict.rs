//! What came of an attack, whether that is within bounds, and how it is told.

#![allow(clippy::print_stdout, reason = "the one place where results are printed")]

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::hostile::{attackers::Volume, honest::Seen, sorts::Least};

/// What came of an attack.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// What was sent.
    pub(crate) unit: &'static str,
    pub(crate) bound_kib: u64,
    pub(crate) rss_before_kib: u64,
    pub(crate) rss_peak_kib: u64,
    pub(crate) rss_after_kib: u64,
    pub(crate) volume: Volume,
    pub(crate) least: Least,
    pub(crate) before: Seen,
    pub(crate) during: Seen,
    pub(crate) after: Seen,
    /// Honest clients that were not in sync, or not served.
    pub(crate) failures: Vec<String>,
    /// Whether the bus still runs.
    pub(crate) alive: bool,
}

/// What is judged beside memory and errors.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// 0: latencies are not judged.
    pub(crate) max_slowdown: f64,
    /// Attacks that do not reach their numbers are weak, and not broken.
    pub(crate) any_volume: bool,
}

/// What is told of all of them.
#[derive(Debug, Default)]
pub(crate) struct Report {
    outcomes: Vec<Value>,
    broken: Vec<String>,
}

/// Below this a change is fast, and a multiple of it means nothing.
const FAST_MS: f64 = 5.0;

/// Of errors that are all the same, so many are enough.
const SHOWN: usize = 3;

// === impl Outcome ===

impl Outcome {
    /// KiB that the bus took for it.
    fn taken_kib(&self) -> u64 {
        self.rss_peak_kib.saturating_sub(self.rss_before_kib)
    }

    fn errors(&self) -> impl Iterator<Item = &String> {
        [&self.before, &self.during, &self.after].into_iter().flat_map(|seen| &seen.errors)
    }

    /// A sentence for each number that the attack did not reach.
    fn short(&self) -> Vec<String> {
        let Volume { sent, held, .. } = self.volume;
        let mut short = Vec::new();
        if sent < self.least.sent {
            let (unit, least) = (self.unit, self.least.sent);
            short.push(format!("only {sent} {unit} were sent, and less than {least} prove nothing"));
        }
        if held < self.least.held {
            short.push(format!("only {held} were held at once, not {}, so that less was proven", self.least.held));
        }
        short
    }

    /// A sentence for each bound that is broken.
    pub(crate) fn broken(&self, bounds: &Bounds) -> Vec<String> {
        let mut broken = self.failures.clone();
        if !self.alive {
            broken.push("the bus has ended".to_owned());
        }
        if self.taken_kib() > self.bound_kib {
            let (taken, bound) = (mib(self.taken_kib()), mib(self.bound_kib));
            broken.push(format!("the bus took {taken:.1} MiB more than before, and may take {bound:.0}"));
        }
        let accepted = self.volume.accepted;
        if accepted > 0 {
            broken.push(format!("{accepted} calls were accepted that must be refused"));
        }
        if !bounds.any_volume {
            broken.extend(self.short());
        }
        for (when, seen) in [("before", &self.before), ("during", &self.during), ("after", &self.after)] {
            if seen.received == 0 {
                broken.push(format!("honest agents received nothing {when} the attack"));
            }
        }
        let errors = self.errors().count();
        if errors > 0 {
            let some: Vec<&str> = self.errors().take(SHOWN).map(String::as_str).collect();
            broken.push(format!("honest clients saw {errors} errors: {}", some.join("; ")));
        }
        let slowdown = self.during.p99_ms / self.before.p99_ms.max(FAST_MS);
        if bounds.max_slowdown > 0.0 && slowdown > bounds.max_slowdown {
            let most = bounds.max_slowdown;
            broken.push(format!("changes took {slowdown:.0} times as long as before, and may take {most:.0} times"));
        }
        broken
    }

    fn to_json(&self, broken: &[String]) -> Value {
        let seen = |seen: &Seen| {
            json!({
                "received": seen.received, "p50_ms": seen.p50_ms, "p99_ms": seen.p99_ms, "guests": seen.guests,
                "errors": seen.errors,
            })
        };
        json!({
            "name": self.name, "what": self.what, "bound_kib": self.bound_kib, "taken_kib": self.taken_kib(),
            "rss_before_kib": self.rss_before_kib, "rss_peak_kib": self.rss_peak_kib, "rss_after_kib": self.rss_after_kib,
            "unit": self.unit, "volume": self.volume.to_json(),
            "before": seen(&self.before), "during": seen(&self.during), "after": seen(&self.after), "broken": broken,
        })
    }
}

// === impl Report ===

impl Report {
    pub(crate) fn begin(seconds: f64, connections: usize) -> Self {
        println!("hostile: {seconds} s for each attack, up to {connections} connections at once");
        println!(
            "{:<19}{:>8}{:>9}{:>8}  {:>14}{:>15}{:>15}{:>7}{:>7}{:>9}{:>9}{:>9}  {:<27}verdict",
            "attack",
            "MiB",
            "allowed",
            "kept",
            "before p50/p99",
            "during (ms)",
            "after (ms)",
            "errors",
            "held",
            "opened",
            "refused",
            "MB sent",
            "as"
        );
        Self::default()
    }

    pub(crate) fn add(&mut self, outcome: &Outcome, bounds: &Bounds) {
        let broken = outcome.broken(bounds);
        let latency = |seen: &Seen| format!("{:.1}/{:.1}", seen.p50_ms, seen.p99_ms);
        let Volume { opened, refused, sent, bytes, held, .. } = outcome.volume;
        println!(
            "{:<19}{:>8.1}{:>9.0}{:>8.1}  {:>14}{:>15}{:>15}{:>7}{held:>7}{opened:>9}{refused:>9}{:>9.1}  {:<27}{}",
            outcome.name,
            mib(outcome.taken_kib()),
            mib(outcome.bound_kib),
            mib(outcome.rss_after_kib.saturating_sub(outcome.rss_before_kib)),
            latency(&outcome.before),
            latency(&outcome.during),
            latency(&outcome.after),
            outcome.errors().count(),
            bytes as f64 / 1e6,
            format!("{sent} {}", outcome.unit),
            match () {
                () if !broken.is_empty() => "BROKEN",
                () if !outcome.short().is_empty() => "weak",
                () => "held",
            },
        );
        self.outcomes.push(outcome.to_json(&broken));
        self.broken
            .extend(broken.into_iter().map(|sentence| format!("{}: {sentence}", outcome.name)));
    }

    /// Writes everything to a file.
    pub(crate) fn save(&self, path: &Path) -> anyhow::Result<()> {
        Ok(fs::write(path, serde_json::to_string_pretty(&self.outcomes)?)?)
    }

    /// Says what is broken. `true` if nothing is.
    pub(crate) fn finish(&self) -> bool {
        for sentence in &self.broken {
            println!("BROKEN: {sentence}");
        }
        if self.broken.is_empty() {
            println!("all bounds held");
        }
        self.broken.is_empty()
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
