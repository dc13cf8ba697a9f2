//! What the program says.

#![allow(clippy::print_stdout, reason = "the one place where results are printed")]

use std::{
    io::{IsTerminal as _, Write as _},
    path::Path,
    time::Duration,
};

use crate::powercut::{crew::Fates, moment::Moment, witness::Witness};

/// Figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    kills: u32,
    by_moment: [u32; Moment::NAMES.len()],
    fates: Fates,
    recoveries: Vec<Duration>,
}

/// Without a terminal, one line for so many kills.
const KILLS_PER_LINE: u32 = 20;

// === impl Summary ===

impl Summary {
    pub(crate) fn begin(seed: u64, kills: u32, directory: &Path) {
        println!("powercut: {kills} kills, seed {seed}, in {}", directory.display());
    }

    pub(crate) fn killed(&mut self, moment: Moment) {
        self.kills += 1;
        self.by_moment[moment.index()] += 1;
    }

    /// A bus has come back after this long.
    pub(crate) fn recovered(&mut self, time: Duration) {
        self.recoveries.push(time);
    }

    /// How long that took last.
    pub(crate) fn last_recovery(&self) -> Duration {
        self.recoveries.last().copied().unwrap_or_default()
    }

    pub(crate) fn settled(&mut self, fates: &Fates) {
        self.fates.applied += fates.applied;
        self.fates.begun += fates.begun;
        self.fates.not_applied += fates.not_applied;
    }

    /// Says how far it is: on a terminal in one line, elsewhere now and then.
    pub(crate) fn progress(&self, wanted: u32, witness: &Witness) {
        let terminal = std::io::stdout().is_terminal();
        if !terminal && !self.kills.is_multiple_of(KILLS_PER_LINE) {
            return;
        }
        let acknowledged: u64 = witness.acknowledgements().values().sum();
        let line = format!("{:>5} of {wanted} kills, {acknowledged} writes acknowledged", self.kills);
        if terminal {
            print!("\r{line}\x1b[K");
            // If nobody can be shown it, nobody misses it.
            drop(std::io::stdout().flush());
        } else {
            println!("{line}");
        }
    }

    /// Says everything.
    pub(crate) fn finish(&mut self, witness: &Witness, took: Duration) {
        if std::io::stdout().is_terminal() {
            print!("\r\x1b[K");
        }
        let list = |parts: &mut dyn Iterator<Item = (&str, u64)>| {
            parts.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        let moments = &mut Moment::NAMES.into_iter().zip(self.by_moment.map(u64::from));
        println!("kills            {} in {:.0} s: {}", self.kills, took.as_secs_f64(), list(moments));
        let acknowledged = witness.acknowledgements();
        let sorts = list(&mut acknowledged.iter().map(|(sort, count)| (*sort, *count)));
        println!("acknowledged     {}: {sorts}", acknowledged.values().sum::<u64>());
        let Fates { applied, begun, not_applied } = self.fates;
        let in_flight = applied + begun + not_applied;
        println!("in flight        {in_flight}: applied {applied}, syncs in part {begun}, not applied {not_applied}");
        self.recoveries.sort_unstable();
        let percentile = |percent: usize| {
            let at = (self.recoveries.len() * percent / 100).min(self.recoveries.len().saturating_sub(1));
            self.recoveries.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        let (p50, p90, p99, max) = (percentile(50), percentile(90), percentile(99), percentile(100));
        println!("recovery in ms   p50 {p50:.0}, p90 {p90:.0}, p99 {p99:.0}, max {max:.0}");
        let resumes = witness.resumes();
        println!("resumes          {}", resumes.values().sum::<u64>());
        for (how, count) in &resumes {
            let filtered = if how.filtered { " through a filter" } else { "" };
            let reason = if how.reason.is_empty() { String::new() } else { format!(" ({})", how.reason) };
            println!("                 {count:>6} {}{filtered}{reason}", how.mode);
        }
    }

    /// Says what was wrong, and how to look into it.
    pub(crate) fn accuse(violations: &[String], seed: u64, directory: &Path) {
        /// Whatever breaks one promise usually breaks many.
        const SHOWN: usize = 20;
        println!("\nVIOLATED: {} times", violations.len());
        violations.iter().take(SHOWN).for_each(|violation| println!("- {violation}"));
        println!("seed {seed}, files and log are kept in {}", directory.display());
    }
}
