//! What a process has used so far.

use std::{fs, time::Duration};

use anyhow::Context as _;

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

// === impl Usage ===

impl Usage {
    /// What a server has used so far, once memory no longer moves.
    pub(crate) async fn once_steady(usage: impl Fn() -> anyhow::Result<Self>) -> anyhow::Result<Self> {
        let mut before = usage()?;
        for _ in 0..STEADY_LOOKS {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = usage()?;
            if now.rss_kib.abs_diff(before.rss_kib) < STEADY_KIB {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }

    /// Of this process.
    pub(crate) fn own() -> anyhow::Result<Self> {
        Self::of(std::process::id())
    }

    /// Asks the kernel.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(Self { rss_kib: kib(&status, "VmRSS:")?, peak_kib: kib(&status, "VmHWM:")?, cpu: cpu(&stat)? })
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
