//! Metrics of the process, as opposed to those of the bus in it.

use std::{
    fmt, fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{gauge::ConstGauge, info::Info},
    registry::Registry,
};
use tokio::time::Instant;

/// What the system says of this process, and of its disk; looked up whenever somebody asks.
#[derive(Debug)]
struct Process {
    started: Instant,
    /// Since the beginning of 1970.
    started_at: f64,
    /// The file of the store.
    file: Option<PathBuf>,
}

/// Registers what is known of the process that keeps its objects in this file.
pub(crate) fn register(registry: &mut Registry, file: Option<PathBuf>) {
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("nimbus_build", "The version that runs", build);
    #[allow(
        clippy::disallowed_methods,
        reason = "monitors want to know when a process was started, by the clock on the wall"
    )]
    let now = SystemTime::now();
    let started_at = now.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    registry.register_collector(Box::new(Process { started: Instant::now(), started_at, file }));
}

// === impl Process ===

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut tell = |name: &str, help: &str, value: Option<f64>| match value {
            None => Ok(()),
            Some(value) => {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
            }
        };
        tell("process_start_time_seconds", "When it started, in seconds since 1970", Some(self.started_at))?;
        tell("nimbus_uptime_seconds", "Since it started", Some((Instant::now() - self.started).as_secs_f64()))?;
        tell("process_resident_memory_bytes", "Memory that it has", resident())?;
        tell("process_open_fds", "Files and sockets that it has open", count_open())?;
        tell("process_max_fds", "Files and sockets that it may have open", max_open())?;
        let file = self.file.as_ref();
        let bytes = file.and_then(|file| fs::metadata(file).ok()).map(|file| file.len() as f64);
        tell("nimbus_store_file_bytes", "Size of the store's file", bytes)?;
        let disk = file.and_then(|file| rustix::fs::statvfs(file).ok());
        let free = disk.map(|disk| disk.f_bavail as f64 * disk.f_frsize as f64);
        tell("nimbus_store_disk_free_bytes", "Room that is left on the disk of the store", free)
    }
}

/// Where there is no such file, nothing is told.
fn resident() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?;
    kilobytes.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

fn count_open() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn max_open() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
