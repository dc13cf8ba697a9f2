//! How long the disk takes.

use nimbus_store::DiskWatch;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::metrics::Metrics;

/// Measures how long the disk takes.
pub(crate) struct DiskTimes {
    metrics: Metrics,
    begun: Mutex<Option<Instant>>,
}

// === impl DiskTimes ===

impl DiskTimes {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self { metrics, begun: Mutex::default() }
    }
}

impl DiskWatch for DiskTimes {
    fn begins(&self, writes: usize, bytes: usize) {
        self.metrics.disk_group.observe(writes as f64);
        self.metrics.disk_bytes.inc_by(bytes as u64);
        *self.begun.lock() = Some(Instant::now());
    }

    fn ends(&self, written: bool) {
        if let Some(begun) = self.begun.lock().take() {
            self.metrics.disk.observe((Instant::now() - begun).as_secs_f64());
        }
        if !written {
            self.metrics.disk_failures.inc();
        }
    }
}
