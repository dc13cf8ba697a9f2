//! Whether every kind that the bus knows is complete, as the health service says it.

use std::sync::atomic::{AtomicU64, Ordering};

use nimbus_store::Collection;
use tokio::sync::Notify;
use tonic_health::{ServingStatus, server::HealthReporter};

/// Says in the health service whether every kind that the bus knows is complete.
///
/// Who changes that marks it, and may wait until it is said; if nobody does, it is said a moment later.
pub(crate) struct Readiness {
    health: HealthReporter,
    /// Changes that there were, and of these how many are said.
    marked: AtomicU64,
    said: AtomicU64,
    changed: Notify,
}

/// In the health service: whether every kind that the bus knows is complete.
const READY: &str = "nimbus.ready";

// === impl Readiness ===

impl Readiness {
    /// Nothing is said yet.
    pub(crate) fn new(health: HealthReporter) -> Self {
        let (marked, said) = (AtomicU64::new(1), AtomicU64::new(0));
        Self { health, marked, said, changed: Notify::new() }
    }

    /// It may be another by now.
    pub(crate) fn mark(&self) {
        self.marked.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
    }

    /// Says how it is, unless that was said already.
    pub(crate) async fn refresh(&self, store: &Collection) {
        let marked = self.marked.load(Ordering::SeqCst);
        while self.said.load(Ordering::SeqCst) < marked {
            let ready = is_ready(store);
            let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
            self.health.set_service_status(READY, status).await;
            // Another call may have looked later and written earlier.
            if is_ready(store) == ready {
                self.said.fetch_max(marked, Ordering::SeqCst);
            }
        }
    }

    /// Says how it is whenever nobody else does.
    pub(crate) async fn keep(&self, store: &Collection) {
        loop {
            self.changed.notified().await;
            self.refresh(store).await;
        }
    }
}

fn is_ready(store: &Collection) -> bool {
    let state = store.state();
    state.kinds().all(|(kind, _)| state.is_complete(kind))
}
