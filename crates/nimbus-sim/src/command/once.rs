//! One seed.

use std::{fmt, io, process::ExitCode};

use nimbus_sim::{Outcome, VIOLATION};
use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
};

/// One seed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What everything follows from.
    #[arg(long)]
    seed: u64,
    /// A deliberate bug, by its name.
    #[arg(long)]
    bug: Option<String>,
    /// Tells everything that happened.
    #[arg(long)]
    trace: bool,
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
    if let Some(bug) = &arguments.bug {
        plant(bug)?;
    }
    if let Some(directives) = &arguments.log {
        let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(directives)?);
        log.with_timer(Simulated).with_ansi(false).with_writer(io::stderr).init();
    }
    let outcome = nimbus_sim::once(arguments.seed)?;
    if arguments.trace {
        outcome.trace.iter().for_each(|line| println!("{line}"));
    }
    Ok(tell(&outcome))
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
