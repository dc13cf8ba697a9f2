//! One simulation that runs on and on.

use std::{fs, process::ExitCode, time::Duration};

use nimbus_sim::{Case, Figures, real_clock};

use crate::command::once::{log, tell};

/// One simulation that runs on and on.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// For how long.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// What everything follows from; a new one if it is left out.
    #[arg(long)]
    seed: Option<u64>,
    /// Tells what happened last, if something was wrong: more than a seed that fails says of itself.
    #[arg(long)]
    trace: bool,
    /// Shows on the standard error what hosts log, such as `info` or `ctkit=debug`.
    #[arg(long)]
    log: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(directives) = &arguments.log {
        log(directives)?;
    }
    let seed = arguments.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let limit = Duration::from_secs(60 * arguments.minutes);
    // About thirty lines, however long it takes.
    let every = (limit / 30).max(Duration::from_secs(1));
    println!("seed {seed}, for {} minutes", arguments.minutes);
    println!(
        "{:>8} {:>9} {:>8} {:>10} {:>10} {:>8} {:>8} {:>8}",
        "real s", "sim h", "rounds", "events", "writes", "faults", "kept", "MiB"
    );
    let (begun, mut told) = (real_clock(), real_clock());
    let outcome = nimbus_sim::rounds(&Case::whole(seed), move |figures: &Figures| {
        let now = real_clock();
        let elapsed = now - begun;
        if now - told >= every || elapsed >= limit {
            told = now;
            let Figures { rounds, events, writes, faults, time, kept, .. } = figures;
            let hours = time.as_secs_f64() / 3600.0;
            println!(
                "{:>8} {hours:>9.2} {rounds:>8} {events:>10} {writes:>10} {faults:>8} {kept:>8} {:>8.1}",
                elapsed.as_secs(),
                memory()
            );
        }
        elapsed < limit
    })?;
    if arguments.trace && outcome.violation.is_some() {
        outcome.trace.iter().for_each(|line| println!("{line}"));
    }
    Ok(tell(&outcome))
}

/// Resident memory of this process, in MiB; 0 where that cannot be told.
fn memory() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}
