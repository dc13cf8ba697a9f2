//! The bus under test, in a process of its own.

use std::{fs, net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
};

/// A bus in a process of its own; it dies with this value.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    _stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Memory now, and at its highest.
    pub(crate) rss_kib: u64,
    pub(crate) peak_kib: u64,
    /// In user and kernel mode together.
    pub(crate) cpu: Duration,
}

/// Memory is steady when it moves by less than this in half a second.
const STEADY_KIB: u64 = 64;

/// Memory that is not steady after as many looks is reported as it is.
const STEADY_LOOKS: usize = 20;

// === impl Server ===

impl Server {
    /// Starts a bus on any free port.
    pub(crate) async fn start(flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_at("127.0.0.1:0", flags).await
    }

    /// Starts a bus.
    pub(crate) async fn start_at(listen: &str, flags: &[&str]) -> anyhow::Result<Self> {
        let path = Self::path()?;
        let mut process = Command::new(&path)
            .args(["serve", "--listen", listen])
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
        let pid = self.process.id().context("the bus has ended")?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(Usage { rss_kib: kib(&status, "VmRSS:")?, peak_kib: kib(&status, "VmHWM:")?, cpu: cpu(&stat)? })
    }

    /// The same, once memory no longer moves.
    pub(crate) async fn steady_usage(&self) -> anyhow::Result<Usage> {
        let mut before = self.usage()?;
        for _ in 0..STEADY_LOOKS {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = self.usage()?;
            if now.rss_kib.abs_diff(before.rss_kib) < STEADY_KIB {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }
}

/// A line of `/proc/PID/status`, such as `VmRSS:     1234 kB`.
fn kib(status: &str, name: &str) -> anyhow::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("/proc/PID/status has no {name}"))?.parse()?)
}

/// Fields 14 and 15 of `/proc/PID/stat`, counted after the name, which may have spaces in it.
fn cpu(stat: &str) -> anyhow::Result<Duration> {
    let (_, fields) = stat.rsplit_once(") ").context("/proc/PID/stat has no name")?;
    let mut times = fields.split(' ').skip(11).map(str::parse::<u64>);
    let mut next = || times.next().context("/proc/PID/stat is too short");
    let ticks = next()?? + next()??;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}
