//! Deliberate bugs, and how soon each is found.

use std::process::ExitCode;

/// Deliberate bugs, and how soon each is found.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only the bug of this name.
    #[arg(long)]
    bug: Option<String>,
    /// How many seeds each bug has to survive in order to count as not found.
    #[arg(long, default_value_t = 40)]
    seeds: u64,
}

#[cfg(not(feature = "planted"))]
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let _ = (&arguments.bug, arguments.seeds);
    anyhow::bail!(
        "this build has no deliberate bugs (hint: cargo run --release -p nimbus-sim --features planted -- planted)"
    )
}

#[cfg(feature = "planted")]
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    use crate::command::seeds::{jobs, once};

    let program = std::env::current_exe()?;
    println!("{:<24} {:>5} {:<14} {}", "bug", "seeds", "found as", "what it does");
    let mut missed = 0;
    for (_, name, what) in nimbus_core::planted::ALL {
        if arguments.bug.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut found = None;
        nimbus_sim::each(
            1..=arguments.seeds,
            jobs(),
            |seed| once(&program, seed, Some(name)),
            |report| {
                found = report.violation.map(|violation| (report.seed, violation));
                found.is_none()
            },
        )?;
        match found {
            Some((seed, violation)) => {
                let property = violation.split(':').next().unwrap_or_default();
                println!("{name:<24} {seed:>5} {property:<14} {what}");
            }
            None => {
                missed += 1;
                println!("{name:<24} {:>5} {:<14} {what}", "-", "NOT FOUND");
            }
        }
    }
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
