//! As many seeds as fit into a time, or those in a file.

use std::{
    env, fs, iter,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use nimbus_sim::{Case, Report, Tally, real_clock};

/// As many seeds as fit into a time, or those in a file.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How long to begin with new seeds.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The first seed; a new one if it is left out.
    #[arg(long)]
    seed: Option<u64>,
    /// The seeds with which lines of this file begin, however long that takes.
    #[arg(long, conflicts_with_all = ["seconds", "seed"])]
    file: Option<PathBuf>,
    /// Every so many seeds, one is run twice, and must be the same run; 0 is never.
    #[arg(long, default_value_t = 16)]
    twice: usize,
    /// How many seeds run at a time; as many as there are processors if it is left out.
    #[arg(long)]
    jobs: Option<usize>,
    /// Goes on after a seed that fails, and says in the end which ones did.
    #[arg(long)]
    all: bool,
    /// Looks for the smallest schedule of faults with which the first seed that fails still fails.
    #[arg(long)]
    minimise: bool,
}

/// How long to look for less of what fails.
pub(crate) const MINIMISES: Duration = Duration::from_secs(180);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let jobs = arguments.jobs.unwrap_or_else(jobs);
    let (mut tally, mut last) = (Tally::default(), None);
    let mut failed: Vec<Report> = Vec::new();
    let program = env::current_exe()?;
    let command = |case: &Case| once(&program, case, None);
    nimbus_sim::each(cases(arguments)?, jobs, command, |mut report: Report| {
        let before = last.replace((report.case.clone(), report.fingerprint.clone()));
        match before.filter(|(case, _)| *case == report.case) {
            None => tally.add(&report),
            Some((_, fingerprint)) if fingerprint != report.fingerprint => {
                let two = format!("Repeatable: simulation: two runs, {fingerprint} and {}", report.fingerprint);
                report.violation = Some(two);
            }
            // What is wrong with it was said.
            Some(_) => return true,
        }
        if let Some(violation) = &report.violation {
            println!("seed {} failed: {violation}", report.case);
            failed.push(report);
        }
        arguments.all || failed.is_empty()
    })?;
    println!("{tally}");
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.all {
        println!("{} of them failed", failed.len());
    }
    let first = failed.swap_remove(0);
    let (case, violation) = (first.case.clone(), first.violation.clone().unwrap_or_default());
    println!("{}", first.text);
    if arguments.minimise && first.property() != Some("Repeatable") {
        println!("{}", nimbus_sim::minimise(first, jobs, MINIMISES, command)?);
    }
    println!("seed {case} failed: {violation}\nagain: cargo run --release -p nimbus-sim -- once --seed {case} --trace");
    Ok(ExitCode::FAILURE)
}

/// What is to be run, some of it twice.
fn cases(arguments: &Arguments) -> anyhow::Result<Box<dyn Iterator<Item = Case>>> {
    let cases: Box<dyn Iterator<Item = Case>> = match &arguments.file {
        Some(file) => {
            let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            let cases = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
                let word = line.split_whitespace().next().unwrap_or_default();
                word.parse().map_err(|error| anyhow::anyhow!("{line:?} begins with no seed: {error}"))
            });
            let cases = cases.collect::<anyhow::Result<Vec<Case>>>()?;
            anyhow::ensure!(!cases.is_empty(), "{} has no seeds", file.display());
            println!("{} seeds of {}", cases.len(), file.display());
            Box::new(cases.into_iter())
        }
        None => {
            let (begun, limit) = (real_clock(), Duration::from_secs(arguments.seconds));
            let first = arguments.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
            println!("seeds from {first} on, for {} s", arguments.seconds);
            Box::new((first..).map(Case::whole).take_while(move |_| real_clock() - begun < limit))
        }
    };
    let twice = arguments.twice;
    let times = move |(index, case): (usize, Case)| {
        let is_repeated = twice > 0 && index.is_multiple_of(twice);
        iter::repeat_n(case, if is_repeated { 2 } else { 1 })
    };
    Ok(Box::new(cases.enumerate().flat_map(times)))
}

/// A process for one case.
pub(crate) fn once(program: &Path, case: &Case, bug: Option<&str>) -> Command {
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
