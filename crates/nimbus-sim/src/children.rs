//! Many seeds, each in a process of its own.

use std::{
    collections::VecDeque,
    io::Read as _,
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::Context as _;

/// How a seed ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Stands for everything that happened.
    pub fingerprint: String,
    /// Things that somebody did or saw.
    pub events: u64,
    /// Faults that were inflicted.
    pub faults: u64,
    /// What was wrong, if something was: the property first.
    pub violation: Option<String>,
    /// All that the process said.
    pub text: String,
}

/// A process that runs a seed.
struct Running {
    seed: u64,
    child: Child,
    output: thread::JoinHandle<String>,
}

/// Says what was wrong, at the beginning of a line.
pub const VIOLATION: &str = "violation: ";

/// Runs seeds until there are no more, or `see` has seen enough. Each is a process, made by `command`.
///
/// # Errors
/// If a process cannot be started.
pub fn each(
    mut seeds: impl Iterator<Item = u64>,
    jobs: usize,
    command: impl Fn(u64) -> Command,
    mut see: impl FnMut(Report) -> bool,
) -> anyhow::Result<()> {
    let mut running: VecDeque<Running> = VecDeque::new();
    loop {
        while running.len() < jobs {
            let Some(seed) = seeds.next() else { break };
            running.push_back(Running::start(seed, command(seed))?);
        }
        // In the order of seeds, so that the first one that fails is always the same.
        let Some(mut first) = running.pop_front() else { return Ok(()) };
        let status = first.child.wait().context("waiting for a simulation")?;
        let text = first.output.join().unwrap_or_default();
        if !see(Report::read(first.seed, status.success(), text)) {
            running.into_iter().for_each(Running::stop);
            return Ok(());
        }
    }
}

// === impl Running ===

impl Running {
    fn start(seed: u64, mut command: Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting a simulation")?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let output = thread::spawn(move || {
            // Panics first: they explain the rest.
            let mut errors = String::new();
            let errors_read = thread::spawn(move || {
                let _ = stderr.map(|mut pipe| pipe.read_to_string(&mut errors));
                errors
            });
            let mut text = String::new();
            let _ = stdout.map(|mut pipe| pipe.read_to_string(&mut text));
            errors_read.join().unwrap_or_default() + &text
        });
        Ok(Self { seed, child, output })
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
    fn read(seed: u64, succeeded: bool, text: String) -> Self {
        let line = text.lines().find(|line| line.starts_with("seed ")).unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        let after = |name| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied();
        let number = |name| after(name).and_then(|word| word.parse().ok()).unwrap_or_default();
        let told = text.lines().find_map(|line| line.strip_prefix(VIOLATION)).map(str::to_owned);
        let died = || (!succeeded || line.is_empty()).then(|| "Isolated: the simulation itself failed".to_owned());
        let (fingerprint, events, faults) =
            (after("fingerprint").unwrap_or_default().to_owned(), number("events"), number("faults"));
        Self { seed, fingerprint, events, faults, violation: told.or_else(died), text }
    }
}
