//! Whether the bus is ready, and if not, what is missing: for the health service and for whoever else asks.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use nimbus_core::{Kind, PublisherId};
use nimbus_store::{Lost, State};
use tokio::sync::{Mutex, Notify};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::inner::Inner;

/// Something that keeps the bus from being ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unready {
    /// It is shutting down.
    Draining,
    /// The disk has failed: nothing is accepted until a restart.
    Store(Arc<Lost>),
    /// A kind is not complete: these publishers have begun a sync of it and not finished one, or nobody has begun any.
    Kind {
        /// The kind.
        kind: Kind,
        /// Those that are waited for.
        publishers: Vec<PublisherId>,
    },
}

/// Says in the health service whether the bus is ready.
///
/// Who changes that marks it, and may wait until it is said; if nobody does, it is said a moment later.
pub(crate) struct Readiness {
    health: HealthReporter,
    /// Changes that there were, and of these how many are said.
    marked: AtomicU64,
    said: AtomicU64,
    changed: Notify,
    /// Whoever looks later must say it later.
    turn: Mutex<()>,
}

/// In the health service: whether the bus is ready.
const READY: &str = "nimbus.ready";

/// Enough to see what the matter is.
const NAMED: usize = 8;

// === impl Readiness ===

impl Readiness {
    /// Nothing is said yet.
    pub(crate) fn new(health: HealthReporter) -> Self {
        let (marked, said) = (AtomicU64::new(1), AtomicU64::new(0));
        Self { health, marked, said, changed: Notify::new(), turn: Mutex::new(()) }
    }

    /// It may be another by now.
    pub(crate) fn mark(&self) {
        self.marked.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_one();
    }

    /// Says how it is, unless that was said already.
    pub(crate) async fn refresh(&self, inner: &Inner) {
        let say = |ready| {
            let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
            self.health.set_service_status(READY, status)
        };
        self.catch_up(|| inner.is_ready(), say).await;
    }

    async fn catch_up<Said: Future<Output = ()>>(&self, look: impl Fn() -> bool, say: impl Fn(bool) -> Said) {
        let marked = self.marked.load(Ordering::SeqCst);
        if self.said.load(Ordering::SeqCst) >= marked {
            return;
        }
        let _turn = self.turn.lock().await;
        // Whoever had its turn meanwhile has looked after what this one has to say.
        if self.said.load(Ordering::SeqCst) < marked {
            let marked = self.marked.load(Ordering::SeqCst);
            say(look()).await;
            self.said.store(marked, Ordering::SeqCst);
        }
    }

    /// Says how it is whenever nobody else does.
    pub(crate) async fn keep(&self, inner: &Inner) {
        loop {
            self.changed.notified().await;
            self.refresh(inner).await;
        }
    }
}

// === impl Inner ===

impl Inner {
    /// What keeps the bus from being ready; nothing if it is.
    pub(crate) fn unready(&self) -> Vec<Unready> {
        let draining = self.sessions.draining().map(|_| Unready::Draining);
        let failed = self.store.failure().map(Unready::Store);
        let kinds = incomplete(&self.store.state());
        draining.into_iter().chain(failed).chain(kinds).collect()
    }

    /// Whether nothing keeps it from being ready.
    pub(crate) fn is_ready(&self) -> bool {
        let state = self.store.state();
        self.sessions.draining().is_none()
            && self.store.failure().is_none()
            && state.kinds().all(|(kind, _)| state.is_complete(kind))
    }
}

/// Kinds that are not complete, and for whom they wait.
fn incomplete(state: &State) -> Vec<Unready> {
    let kinds = state.kinds().filter(|(kind, _)| !state.is_complete(kind));
    kinds
        .map(|(kind, of)| Unready::Kind { kind: kind.clone(), publishers: of.unsynced().cloned().collect() })
        .collect()
}

// === impl Unready ===

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Draining => f.write_str("draining: the bus is shutting down"),
            Self::Store(failure) => write!(f, "store: {failure}"),
            Self::Kind { kind, publishers } if publishers.is_empty() => {
                write!(f, "kind {kind}: waits for a sync, which no publisher has begun")
            }
            Self::Kind { kind, publishers } => {
                let named: Vec<&str> = publishers.iter().take(NAMED).map(PublisherId::as_str).collect();
                write!(f, "kind {kind}: waits for the sync of {}", named.join(", "))?;
                match publishers.len() - named.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
