//! A readable copy of one kind, and word of what changes in it.

mod config;
mod difference;
mod intake;
mod mailbox;
mod registry;
mod shared;
mod status;
mod subscription;
mod worker;

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey, Position, Revision};
use nimbus_store::Record;

use crate::{snapshot::Snapshot, source::Source};

pub use config::ReflectorConfig;
pub use registry::Reflectors;
use registry::Use;
pub use status::{WatchEpoch, WatchPhase, WatchStatus};
pub use subscription::{Batch, Subscription, Woken};

/// A readable copy of one kind, and word of what changes in it. Reads never block and may be stale.
///
/// One task watches the source for all who use the reflector, however many there are. A watch that breaks off is taken
/// up again where it was, after a backoff; if the source lists everything again, what is missing from the list is gone.
/// Within an epoch of the source, nothing older ever replaces something newer.
///
/// Cheap to clone. When the last clone and the last subscription are gone, the watch goes on for a while, in case that
/// somebody comes back, and ends.
///
/// ```
/// use ctkit::{Reflector, ReflectorConfig, Store};
/// use nimbus_core::Kind;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), nimbus_core::Invalid> {
/// let policies = Kind::new("demo.v1.Policy")?;
/// let reflector = Reflector::start(Store::in_memory(), &policies, ReflectorConfig::default());
/// let mut subscription = reflector.subscribe();
///
/// let batch = subscription.next().await;
/// assert!(batch.listed.is_some(), "that was everything there is");
/// for woken in batch.keys {
///     let _newest = reflector.snapshot().get(&woken.key);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Reflector(Arc<Use>);

// === impl Reflector ===

impl Reflector {
    /// Watches one kind of a source. Who needs several kinds, or shares them, asks [`Reflectors`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(source: impl Source, kind: &Kind, config: ReflectorConfig) -> Self {
        Reflectors::new(source, config).get(kind)
    }

    /// The kind that is watched.
    pub fn kind(&self) -> &Kind {
        &self.0.shared().kind
    }

    /// The objects as they are known now: everything that a subscriber was woken for before is in it, and nothing that
    /// no subscriber is woken for. Empty as long as nothing was listed.
    ///
    /// Of a source that can be read directly, this is a part of it, and not a copy.
    pub fn snapshot(&self) -> Snapshot {
        self.0.shared().snapshot()
    }

    /// One object of [`Reflector::early_snapshot`].
    pub(crate) fn find(&self, key: &ObjectKey) -> Option<Arc<Record>> {
        self.0.shared().find(key)
    }

    /// As long as this is the same, whatever was read of [`Self::early_snapshot`] would be read again.
    pub(crate) fn edits(&self) -> u64 {
        self.0.shared().edits()
    }

    /// Waits until an object is no longer as it was seen: another revision or life of it, or none.
    pub(crate) async fn changed(&self, key: &ObjectKey, seen: Option<&Record>) {
        self.0.shared().changed(key, seen).await;
    }

    /// Tells of everything there is, and then of everything that changes.
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.clone(), self.0.shared().open_mailbox(false))
    }

    /// The same, and does not wait for the end of the first list: what was read of it is in [`Self::early_snapshot`].
    pub(crate) fn subscribe_early(&self) -> Subscription {
        Subscription::new(self.clone(), self.0.shared().open_mailbox(true))
    }

    /// [`Reflector::snapshot`], or what was read of the first list.
    pub(crate) fn early_snapshot(&self) -> Snapshot {
        self.0.shared().early_snapshot()
    }

    /// Waits until everything was listed once.
    pub async fn synced(&self) {
        self.0.shared().until(|status| status.epoch > WatchEpoch::ZERO).await;
    }

    /// Whether everything was listed once.
    pub fn is_synced(&self) -> bool {
        self.status().epoch > WatchEpoch::ZERO
    }

    /// Waits until a snapshot has what was written at a revision, such as that of one's own write to this kind.
    ///
    /// If the source begins another epoch meanwhile, the wait ends: revisions can no longer be compared, and what was
    /// listed since is newer anyhow. Of a revision at which nothing of this kind changed, it may take until the source
    /// next says how far it is.
    pub async fn reach(&self, revision: Revision) {
        let shared = self.0.shared();
        let began = self.status().position.map(|position| position.epoch);
        let reached = |position: Position| {
            // Nothing of this kind happened between here and there.
            let is_still = |state: Snapshot| {
                state.epoch() == Some(position.epoch)
                    && state.revision() >= revision
                    && state.is_unchanged(self.kind(), position.revision)
            };
            position.revision >= revision
                || began.is_some_and(|began| began != position.epoch)
                || shared.source.state().is_some_and(is_still)
        };
        shared.until(|status| status.position.is_some_and(reached)).await;
    }

    /// Waits until everything can be read that has happened in the source until now, also if its watch hears nothing at the
    /// moment. Says when there was last something to tell by then. What the source refuses to show is waited for only if it is
    /// `needed`.
    async fn renew(&self, needed: bool) -> Revision {
        let shared = self.0.shared();
        let renewed = async {
            match shared.source.state() {
                Some(state) => self.reach(state.revision()).await,
                None => shared.renew().await,
            }
        };
        let refused = async {
            if needed {
                std::future::pending::<()>().await;
            }
            shared.until(|status| status.failures > 0).await;
        };
        tokio::select! {
            () = renewed => {}
            () = refused => {}
        }
        shared.news()
    }

    /// Whether a subscriber that was told everything up to a revision has nothing more to hear.
    pub(crate) fn has_told_all(&self, told: Revision) -> bool {
        self.0.shared().has_told_all(told)
    }

    /// How the watch is doing.
    pub fn status(&self) -> WatchStatus {
        self.0.shared().status()
    }
}

#[cfg(test)]
mod tests;
