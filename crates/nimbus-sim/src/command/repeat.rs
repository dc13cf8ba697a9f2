//! One seed, several times, in circumstances that must not matter.

use std::{
    cell::Cell,
    env, fs, iter,
    process::{Command, ExitCode},
};

use nimbus_sim::{Case, Report};

/// One seed, several times, in circumstances that must not matter.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What everything follows from; a new one if it is left out.
    #[arg(long)]
    seed: Option<Case>,
    /// How often, all at once, so that they are in each other's way.
    #[arg(long, default_value_t = 6)]
    times: usize,
}

/// Keeps a program to some processors: how many there are must not matter either.
const TASKSET: &str = "taskset";

/// Enough to see what led to a difference.
const TOLD: usize = 20;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let case = arguments.seed.clone();
    let case = case.unwrap_or_else(|| Case::whole(u64::from(rand::random::<u32>())));
    let program = env::current_exe()?;
    let (begun, processor) = (Cell::new(0), processor());
    let command = |case: &Case| {
        let number = begun.replace(begun.get() + 1);
        let mut command = match &processor {
            Some(processor) if number % 2 == 1 => {
                let mut command = Command::new(TASKSET);
                command.args(["-c", processor]).arg(&program);
                command
            }
            _ => Command::new(&program),
        };
        command.args(["once", "--trace", "--seed", &case.to_string()]);
        // Other addresses, and another place to be.
        command.env("NIMBUS_SIM_PADDING", "x".repeat(3_000 * number));
        if number % 3 == 1 {
            command.current_dir("/");
        }
        command
    };
    let (mut first, mut different): (Option<Report>, Option<Report>) = (None, None);
    nimbus_sim::each(iter::repeat_n(case.clone(), arguments.times), arguments.times, command, |report| {
        match &first {
            None => first = Some(report),
            Some(first) if first.fingerprint == report.fingerprint => {}
            Some(_) => different = Some(report),
        }
        different.is_none()
    })?;
    let Some(first) = first else { return Ok(ExitCode::SUCCESS) };
    anyhow::ensure!(first.events > 0, "seed {case} did nothing:\n{}", first.text);
    let Some(different) = different else {
        println!(
            "seed {case} is the same run {} times: {}, {} events",
            arguments.times, first.fingerprint, first.events
        );
        return Ok(ExitCode::SUCCESS);
    };
    tell(&first, &different);
    println!("seed {case} is two runs: {} and {}", first.fingerprint, different.fingerprint);
    Ok(ExitCode::FAILURE)
}

/// A processor that this process may use, if another one can be kept to it.
fn processor() -> Option<String> {
    Command::new(TASKSET).arg("--version").output().ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().split([',', '-']).next()?.to_owned())
}

/// Says where two runs begin to differ.
fn tell(one: &Report, other: &Report) {
    let (one, other): (Vec<_>, Vec<_>) = (one.text.lines().collect(), other.text.lines().collect());
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    one[same.saturating_sub(TOLD)..same].iter().for_each(|line| println!("{line}"));
    for (name, lines) in [("one:", one), ("the other:", other)] {
        println!("{name}");
        lines.iter().skip(same).take(TOLD).for_each(|line| println!("{line}"));
    }
}
