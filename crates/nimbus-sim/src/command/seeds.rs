//! As many seeds as fit into a time.

use std::{
    env,
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use nimbus_sim::{Case, Report, Tally, real_clock};

/// As many seeds as fit into a time.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How long to begin with new seeds.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The first seed; a new one if it is left out.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds run at a time; as many as there are processors if it is left out.
    #[arg(long)]
    jobs: Option<usize>,
    /// Looks for the smallest schedule of faults with which the first seed that fails still fails.
    #[arg(long)]
    minimise: bool,
}

/// How long to look for less of what fails.
pub(crate) const MINIMISES: Duration = Duration::from_secs(180);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begun = real_clock();
    let first = arguments.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let limit = Duration::from_secs(arguments.seconds);
    let jobs = arguments.jobs.unwrap_or_else(jobs);
    println!("seeds from {first} on, for {} s", arguments.seconds);
    let (mut tally, mut failed) = (Tally::default(), None);
    let program = env::current_exe()?;
    let command = |case: &Case| once(&program, case, None);
    let fresh = (first..).map(Case::whole).take_while(move |_| real_clock() - begun < limit);
    nimbus_sim::each(fresh, jobs, command, |report: Report| {
        tally.add(&report);
        failed = report.violation.is_some().then_some(report);
        failed.is_none()
    })?;
    println!("{tally}");
    let Some(report) = failed else { return Ok(ExitCode::SUCCESS) };
    println!("{}", report.text);
    let case = report.case.clone();
    println!("seed {case} failed; it fails again with: nimbus-sim once --seed {case}");
    if arguments.minimise {
        println!("{}", nimbus_sim::minimise(report, jobs, MINIMISES, command)?);
    }
    Ok(ExitCode::FAILURE)
}

/// A process for one case.
pub(crate) fn once(program: &std::path::Path, case: &Case, bug: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command.arg("once").arg("--seed").arg(case.to_string());
    if let Some(bug) = bug {
        command.arg("--bug").arg(bug);
    }
    command
}

/// A simulation keeps one processor busy.
pub(crate) fn jobs() -> usize {
    thread::available_parallelism().map_or(2, usize::from)
}
