//! The simulation, which is a crate of its own: it needs a network, and a system, that nobody else should be built with.

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::Context as _;

/// Runs one simulation on and on, and says how fast it is and how much memory it takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Soak {
    /// For how long.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// What everything follows from; a new one if it is left out.
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs a list of deliberate bugs, and fails if one of them is not found.
#[derive(Debug, clap::Args)]
pub(crate) struct Planted {
    /// Only the bug of this name.
    #[arg(long)]
    bug: Option<String>,
}

pub(crate) fn soak(arguments: &Soak) -> anyhow::Result<ExitCode> {
    let mut words = vec!["soak".to_owned(), "--minutes".to_owned(), arguments.minutes.to_string()];
    words.extend(arguments.seed.into_iter().flat_map(|seed| ["--seed".to_owned(), seed.to_string()]));
    run(&[], &words)
}

pub(crate) fn planted(arguments: &Planted) -> anyhow::Result<ExitCode> {
    let mut words = vec!["planted".to_owned()];
    words.extend(arguments.bug.iter().flat_map(|bug| ["--bug".to_owned(), bug.clone()]));
    run(&["--features", "planted"], &words)
}

/// Builds the simulation, optimised, and runs it.
fn run(features: &[&str], arguments: &[String]) -> anyhow::Result<ExitCode> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nimbus-sim/Cargo.toml");
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--manifest-path"])
        .arg(manifest)
        .args(features)
        .arg("--")
        .args(arguments)
        .status()
        .context("starting cargo, which builds the simulation (hint: run it inside the workspace)")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
