//! What this process has used so far.

use std::{fs, time::Duration};

use anyhow::Context as _;

/// What this process has used so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Memory now, and at its highest.
    pub(crate) rss_kib: u64,
    pub(crate) peak_kib: u64,
    /// In user and kernel mode together.
    pub(crate) cpu: Duration,
}

// === impl Usage ===

impl Usage {
    /// Asks the kernel.
    pub(crate) fn now() -> anyhow::Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let stat = fs::read_to_string("/proc/self/stat")?;
        Ok(Self { rss_kib: kib(&status, "VmRSS:")?, peak_kib: kib(&status, "VmHWM:")?, cpu: cpu(&stat)? })
    }
}

/// A line of `/proc/self/status`, such as `VmRSS:     1234 kB`.
fn kib(status: &str, name: &str) -> anyhow::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("/proc/self/status has no {name}"))?.parse()?)
}

/// Fields 14 and 15 of `/proc/self/stat`, counted after the name, which may have spaces in it.
fn cpu(stat: &str) -> anyhow::Result<Duration> {
    let (_, fields) = stat.rsplit_once(") ").context("/proc/self/stat has no name")?;
    let mut times = fields.split(' ').skip(11).map(str::parse::<u64>);
    let mut next = || times.next().context("/proc/self/stat is too short");
    let ticks = next()?? + next()??;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}
