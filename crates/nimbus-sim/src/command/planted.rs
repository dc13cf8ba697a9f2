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
    use nimbus_sim::Case;

    use crate::command::seeds::{jobs, once};

    let program = std::env::current_exe()?;
    println!("| bug | what it does | seeds | found as |\n|---|---|---|---|");
    let (mut asked, mut missed) = (0, 0);
    for (_, name, what) in nimbus_core::planted::ALL {
        if arguments.bug.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        asked += 1;
        let mut found = None;
        nimbus_sim::each(
            (1..=arguments.seeds).map(Case::whole),
            jobs(),
            |case| once(&program, case, Some(name)),
            |report| {
                found = report.property().map(|property| (report.case.seed, property.to_owned()));
                found.is_none()
            },
        )?;
        match found {
            Some((seed, property)) => println!("| `{name}` | {what} | {seed} | {property} |"),
            None => {
                missed += 1;
                println!("| `{name}` | {what} | not in {} | **not found** |", arguments.seeds);
            }
        }
    }
    anyhow::ensure!(asked > 0, "there is no bug of that name (hint: without --bug, all are run)");
    println!("\n{} of {asked} found", asked - missed);
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
