//! What all agents have done, and how they are.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::json;

/// What all agents have done, and how they are.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) started: Count,
    pub(crate) in_sync: Count,
    pub(crate) applied: Count,
    pub(crate) removed: Count,
    pub(crate) failed: Count,
    pub(crate) rejected: Count,
    pub(crate) stalled: Count,
    pub(crate) restarts: Count,
    pub(crate) mismatches: Count,
}

/// A number that goes up, or down.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

// === impl Count ===

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn take(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Tally ===

impl Tally {
    /// Prints a line each second, for ever.
    pub(crate) async fn print_every_second(self: &Arc<Self>, json: bool) {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        loop {
            seconds.tick().await;
            self.print(json);
        }
    }

    #[allow(clippy::print_stdout, reason = "this is what it is for")]
    pub(crate) fn print(&self, json: bool) {
        if json { println!("{}", self.to_json()) } else { println!("{self}") }
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "agents": self.started.get(),
            "in_sync": self.in_sync.get(),
            "applied": self.applied.get(),
            "removed": self.removed.get(),
            "failed": self.failed.get(),
            "rejected": self.rejected.get(),
            "stalled": self.stalled.get(),
            "restarts": self.restarts.get(),
            "mismatches": self.mismatches.get(),
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} agents, {} in sync · {} applied, {} removed, {} failed, {} rejected, {} stalled · {} restarts",
            self.started.get(),
            self.in_sync.get(),
            self.applied.get(),
            self.removed.get(),
            self.failed.get(),
            self.rejected.get(),
            self.stalled.get(),
            self.restarts.get(),
        )
    }
}
