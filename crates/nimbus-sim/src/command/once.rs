//! One seed.

use std::{env, fmt, io, iter, process::ExitCode};

use nimbus_sim::{Case, Outcome, VIOLATION};
use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
};

use crate::command::seeds;

/// One seed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What everything follows from: a seed, and perhaps what is left of its faults, such as 42, 42/3,17 or 42/3,17/9500.
    #[arg(long)]
    seed: Case,
    /// A deliberate bug, by its name.
    #[arg(long)]
    bug: Option<String>,
    /// Tells everything that happened.
    #[arg(long)]
    trace: bool,
    /// If it fails, looks for the smallest schedule of faults with which it still does.
    #[arg(long)]
    minimise: bool,
    /// Shows on the standard error what hosts log, such as `info` or `ctkit=debug`.
    #[arg(long)]
    log: Option<String>,
}

/// The time of the simulation.
struct Simulated;

impl FormatTime for Simulated {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:12.3}", turmoil::sim_elapsed().unwrap_or_default().as_secs_f64())
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.minimise {
        return minimise(arguments);
    }
    if let Some(bug) = &arguments.bug {
        plant(bug)?;
    }
    if let Some(directives) = &arguments.log {
        log(directives)?;
    }
    let outcome = nimbus_sim::once(&arguments.seed)?;
    if arguments.trace {
        outcome.trace.iter().for_each(|line| println!("{line}"));
    }
    Ok(tell(&outcome))
}

/// Runs it in a process of its own, and then less and less of it.
fn minimise(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let program = env::current_exe()?;
    let command = |case: &Case| seeds::once(&program, case, arguments.bug.as_deref());
    let mut report = None;
    nimbus_sim::each(iter::once(arguments.seed.clone()), 1, command, |one| {
        report = Some(one);
        true
    })?;
    let Some(report) = report.filter(|report| report.violation.is_some()) else {
        println!("case {} does not fail", arguments.seed);
        return Ok(ExitCode::SUCCESS);
    };
    let smallest = nimbus_sim::minimise(report, seeds::jobs(), seeds::MINIMISES, command)?;
    println!("{}\n\n{smallest}", smallest.report.text);
    Ok(ExitCode::FAILURE)
}

/// Shows what hosts log, with the time of the simulation.
pub(crate) fn log(directives: &str) -> anyhow::Result<()> {
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(directives)?);
    log.with_timer(Simulated).with_ansi(false).with_writer(io::stderr).init();
    Ok(())
}

/// Says how it ended.
pub(crate) fn tell(outcome: &Outcome) -> ExitCode {
    outcome.story.iter().for_each(|line| println!("{line}"));
    println!("{outcome}");
    match &outcome.violation {
        None => ExitCode::SUCCESS,
        Some(violation) => {
            println!("{VIOLATION}{violation}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(feature = "planted")]
fn plant(name: &str) -> anyhow::Result<()> {
    let found = nimbus_core::planted::ALL.iter().find(|(_, known, _)| *known == name);
    let (bug, ..) =
        found.ok_or_else(|| anyhow::anyhow!("there is no bug {name} (hint: the command planted lists them)"))?;
    nimbus_core::planted::plant(*bug);
    Ok(())
}

#[cfg(not(feature = "planted"))]
fn plant(_: &str) -> anyhow::Result<()> {
    anyhow::bail!("this build has no deliberate bugs (hint: build it with --features planted)")
}
