//! The bus under test, in a process of its own.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    time::Instant,
};

use crate::usage::Usage;

/// A bus in a process of its own; it dies with this value.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    _stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

/// How long the bus is watched when nobody asks for anything: every agent is sent a bookmark in this time.
const IDLE: Duration = Duration::from_secs(15);

// === impl Server ===

impl Server {
    /// Starts a bus on any free port.
    pub(crate) async fn start(flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_at("127.0.0.1:0", flags).await
    }

    /// Starts a bus whose objects are in this file.
    pub(crate) async fn start_durable(file: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_durable_at("127.0.0.1:0", file, flags).await
    }

    /// The same, at an address.
    pub(crate) async fn start_durable_at(listen: &str, file: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_store(listen, &format!("redb:{}", file.display()), flags).await
    }

    /// Starts a bus.
    pub(crate) async fn start_at(listen: &str, flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_store(listen, "memory", flags).await
    }

    async fn start_store(listen: &str, store: &str, flags: &[&str]) -> anyhow::Result<Self> {
        let path = Self::path()?;
        let mut process = Command::new(&path)
            .args(["serve", "--store", store, "--admin", "none", "--listen", listen])
            .args(flags)
            .env("NIMBUS_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {} (hint: cargo build -p nimbus-cli)", path.display()))?;
        let mut stdout = BufReader::new(process.stdout.take().context("the bus has no output")?);
        let mut line = String::new();
        stdout.read_line(&mut line).await?;
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            bail!("{} did not say where it listens, but {line:?}", path.display());
        };
        Ok(Self { address: address.parse()?, process, _stdout: stdout })
    }

    /// The command that is measured: the one beside this program.
    pub(crate) fn path() -> anyhow::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name("nimbus"))
    }

    /// Ends it without a chance to say anything, as a crash would.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("cannot kill the bus")
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.process.id().context("the bus has ended")?)
    }

    /// CPU that it uses when nobody asks for anything, as a part of one core: pings and bookmarks.
    ///
    /// Whatever takes long, because the machine is busy, has as much of it in its CPU.
    pub(crate) async fn idle(&self) -> anyhow::Result<f64> {
        let (before, began) = (self.usage()?, Instant::now());
        tokio::time::sleep(IDLE).await;
        Ok((self.usage()?.cpu - before.cpu).as_secs_f64() / began.elapsed().as_secs_f64())
    }

    /// What it has used so far, once memory no longer moves.
    pub(crate) async fn steady_usage(&self) -> anyhow::Result<Usage> {
        Usage::once_steady(|| self.usage()).await
    }
}
