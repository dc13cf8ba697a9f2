//! Whether everything that should work does.

use std::collections::BTreeSet;

use tokio::sync::watch;

/// What is still missing before a manager is ready, by name. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Readiness(watch::Sender<State>);

#[derive(Debug, Clone, Default)]
struct State {
    missing: BTreeSet<String>,
    stopped: bool,
}

// === impl Readiness ===

impl Readiness {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(State { missing: BTreeSet::from(["start".to_owned()]), stopped: false }))
    }

    pub(crate) fn set(&self, missing: BTreeSet<String>) {
        self.0.send_if_modified(|state| {
            let changed = state.missing != missing;
            state.missing = missing;
            changed
        });
    }

    pub(crate) fn stopped(&self) {
        self.0.send_modify(|state| state.stopped = true);
    }

    /// What is still missing; nothing if all is well.
    pub fn missing(&self) -> Vec<String> {
        self.0.borrow().missing.iter().cloned().collect()
    }

    /// Waits until nothing is missing: every object of every controller was looked at once, and the bus has everything.
    ///
    /// An instance that stands by is ready when it could take over. Returns false if the manager has stopped before.
    pub async fn ready(&self) -> bool {
        let mut state = self.0.subscribe();
        let reached = state.wait_for(|state| state.missing.is_empty() || state.stopped).await;
        reached.is_ok_and(|state| state.missing.is_empty())
    }
}
