//! As many seeds as fit into a time.

use std::{
    env,
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use nimbus_sim::{Report, real_clock};

/// As many seeds as fit into a time.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How long to begin with new seeds.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The first seed; a new one if it is left out.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begun = real_clock();
    let first = arguments.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let limit = Duration::from_secs(arguments.seconds);
    println!("seeds from {first} on, for {} s", arguments.seconds);
    let (mut seeds, mut events, mut faults, mut failed) = (0, 0, 0, None);
    let program = env::current_exe()?;
    let command = |seed: u64| once(&program, seed, None);
    let fresh = (first..).take_while(move |_| real_clock() - begun < limit);
    nimbus_sim::each(fresh, jobs(), command, |report: Report| {
        (seeds, events, faults) = (seeds + 1, events + report.events, faults + report.faults);
        failed = report.violation.is_some().then_some(report);
        failed.is_none()
    })?;
    println!("{seeds} seeds, {events} events, {faults} faults");
    let Some(report) = failed else { return Ok(ExitCode::SUCCESS) };
    println!("{}", report.text);
    println!("seed {} failed; it fails again with: nimbus-sim once --seed {}", report.seed, report.seed);
    Ok(ExitCode::FAILURE)
}

/// A process for one seed.
pub(crate) fn once(program: &std::path::Path, seed: u64, bug: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command.arg("once").arg("--seed").arg(seed.to_string());
    if let Some(bug) = bug {
        command.arg("--bug").arg(bug);
    }
    command
}

/// A simulation keeps one processor busy.
pub(crate) fn jobs() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}
