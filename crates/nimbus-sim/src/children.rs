//! Many cases, each in a process of its own.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
};

use anyhow::Context as _;
use tempfile::TempDir;

use crate::{case::Case, once::scratch};

/// How a case ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The case.
    pub case: Case,
    /// Stands for everything that happened.
    pub fingerprint: String,
    /// Things that somebody did or saw.
    pub events: u64,
    /// Faults that were inflicted, by their sort.
    pub faults: BTreeMap<String, u64>,
    /// What was wrong, if something was: the property first.
    pub violation: Option<String>,
    /// All that the process said.
    pub text: String,
}

/// What many cases were, in all.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    seeds: u64,
    events: u64,
    faults: BTreeMap<String, u64>,
}

/// A process that runs a case.
struct Running {
    case: Case,
    child: Child,
    output: JoinHandle<String>,
    /// Its files, which are removed even if it was killed.
    _files: TempDir,
}

/// Says what was wrong, at the beginning of a line.
pub const VIOLATION: &str = "violation: ";

/// Runs cases until there are no more, or `see` has seen enough. Each is a process, made by `command`.
///
/// # Errors
/// If a process cannot be started.
pub fn each(
    mut cases: impl Iterator<Item = Case>,
    jobs: usize,
    command: impl Fn(&Case) -> Command,
    mut see: impl FnMut(Report) -> bool,
) -> anyhow::Result<()> {
    let mut running: VecDeque<Running> = VecDeque::new();
    loop {
        while running.len() < jobs {
            let Some(case) = cases.next() else { break };
            let command = command(&case);
            running.push_back(Running::start(case, command)?);
        }
        // In the order of cases, so that the first one that fails is always the same.
        let Some(first) = running.pop_front() else { return Ok(()) };
        if !see(first.report()?) {
            running.into_iter().for_each(Running::stop);
            return Ok(());
        }
    }
}

// === impl Running ===

impl Running {
    fn start(case: Case, mut command: Command) -> anyhow::Result<Self> {
        let files = scratch().context("making a directory for a simulation")?;
        let mut child = command
            .env("TMPDIR", files.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting a simulation")?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let output = thread::spawn(move || {
            // Panics first: they explain the rest.
            let errors_read = thread::spawn(move || {
                let mut errors = String::new();
                let _ = stderr.map(|mut pipe| pipe.read_to_string(&mut errors));
                errors
            });
            let mut text = String::new();
            let _ = stdout.map(|mut pipe| pipe.read_to_string(&mut text));
            errors_read.join().unwrap_or_default() + &text
        });
        Ok(Self { case, child, output, _files: files })
    }

    fn report(mut self) -> anyhow::Result<Report> {
        let status = self.child.wait().context("waiting for a simulation")?;
        Ok(Report::read(self.case, status, self.output.join().unwrap_or_default()))
    }

    fn stop(mut self) {
        // It fails only if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.output.join());
    }
}

// === impl Report ===

impl Report {
    fn read(case: Case, status: ExitStatus, text: String) -> Self {
        let line = text.lines().find(|line| line.starts_with("seed ")).unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        let after = |name| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied();
        let told = text.lines().find_map(|line| line.strip_prefix(VIOLATION)).map(str::to_owned);
        let died = || {
            (!status.success() || line.is_empty())
                .then(|| format!("Isolated: the simulation itself ended with {status}"))
        };
        let faults = words.iter().filter_map(|word| word.split_once('='));
        Self {
            fingerprint: after("fingerprint").unwrap_or_default().to_owned(),
            events: after("events").and_then(|word| word.parse().ok()).unwrap_or_default(),
            faults: faults.filter_map(|(sort, count)| Some((sort.to_owned(), count.parse().ok()?))).collect(),
            violation: told.or_else(died),
            case,
            text,
        }
    }

    /// The property that does not hold.
    pub fn property(&self) -> Option<&str> {
        self.violation.as_ref()?.split(':').next()
    }
}

// === impl Tally ===

impl Tally {
    /// One case more.
    pub fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.events += report.events;
        for (sort, count) in &report.faults {
            *self.faults.entry(sort.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, events, faults } = self;
        let per_seed = events / seeds.max(&1);
        write!(f, "{seeds} seeds, {events} events ({per_seed} per seed), {} faults", faults.values().sum::<u64>())?;
        let faults: Vec<_> = faults.iter().map(|(sort, count)| format!("{sort} {count}")).collect();
        if faults.is_empty() { Ok(()) } else { write!(f, " ({})", faults.join(", ")) }
    }
}
