//! The bus under test, in a process of its own.

use std::{
    env,
    fs::{self, File, OpenOptions},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// The command that runs a bus, and where its files are.
#[derive(Debug)]
pub(crate) struct Program {
    nimbus: PathBuf,
    directory: PathBuf,
}

/// A bus in a process of its own; it dies with this value.
#[derive(Debug)]
pub(crate) struct Daemon {
    process: Child,
    stdout: BufReader<ChildStdout>,
}

/// So that subscribers soon know that they have everything.
const BOOKMARK_SECONDS: &str = "0.05";

/// Nothing that a bus does with a file of this size takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Of what a bus says before it ends, this much is shown.
const LAST_LINES: usize = 5;

/// Builds the command, if cargo runs this program: a command of yesterday would prove nothing about today's.
fn build() -> anyhow::Result<()> {
    let (Some(cargo), Some(_)) = (env::var_os("CARGO"), env::var_os("CARGO_MANIFEST_DIR")) else { return Ok(()) };
    let profile: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    let status = std::process::Command::new(cargo)
        .args(["build", "--quiet", "-p", "nimbus-cli"])
        .args(profile)
        .status()?;
    ensure!(status.success(), "cannot build the nimbus command");
    Ok(())
}

// === impl Program ===

impl Program {
    /// The command at `nimbus`, or else the one beside this program.
    pub(crate) fn find(nimbus: Option<&Path>, directory: &Path) -> anyhow::Result<Self> {
        let nimbus = match nimbus {
            Some(path) => path.to_owned(),
            None => {
                build()?;
                env::current_exe()?.with_file_name(format!("nimbus{}", env::consts::EXE_SUFFIX))
            }
        };
        let hint = "hint: cargo build --release -p nimbus-cli, or say where it is with --nimbus PATH";
        ensure!(nimbus.is_file(), "there is no nimbus command at {} ({hint})", nimbus.display());
        Ok(Self { nimbus, directory: directory.to_owned() })
    }

    /// Begins to start a bus on any free port, on a file that outlives it.
    pub(crate) fn spawn(&self) -> anyhow::Result<Daemon> {
        let store = format!("redb:{}", self.directory.join("nimbus.redb").display());
        self.spawn_with(&["--store", &store, "--bookmark-interval", BOOKMARK_SECONDS])
    }

    /// The same, with these flags.
    pub(crate) fn spawn_with(&self, flags: &[&str]) -> anyhow::Result<Daemon> {
        let mut process = Command::new(&self.nimbus)
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "none"])
            .args(flags)
            .env("NIMBUS_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(self.log()?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.nimbus.display()))?;
        let stdout = BufReader::new(process.stdout.take().context("the bus has no output")?);
        Ok(Daemon { process, stdout })
    }

    /// The last of what the bus said.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    fn log(&self) -> anyhow::Result<File> {
        Ok(OpenOptions::new().create(true).append(true).open(self.log_path())?)
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("nimbus.log")
    }
}

// === impl Daemon ===

impl Daemon {
    /// Where it listens, as soon as it does.
    pub(crate) async fn address(&mut self) -> anyhow::Result<SocketAddr> {
        let mut line = String::new();
        match timeout(PATIENCE, self.stdout.read_line(&mut line)).await {
            Ok(read) => drop(read?),
            Err(_) => bail!("it has not said where it listens within {PATIENCE:?}"),
        }
        let address = line.trim().strip_prefix("listening on ");
        Ok(address.with_context(|| format!("it said {line:?} and not where it listens"))?.parse()?)
    }

    /// The process, if it has not ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> anyhow::Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// Ends it without a chance to do or say anything.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("cannot kill the bus")
    }

    /// Asks it to stop, and says whether it did so in time and well.
    pub(crate) async fn stop(mut self) -> anyhow::Result<bool> {
        let pid = self.process.id().context("the bus has ended")?.to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await?;
        ensure!(sent.success(), "cannot send a signal to the bus");
        Ok(matches!(timeout(PATIENCE, self.process.wait()).await, Ok(Ok(status)) if status.success()))
    }
}
