//! A source that fails and lags as it is told to.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use ctkit::{Acquired, CommitError, Event, Guard, Held, Kind, Leases, Source, Store, WatchError};
use nimbus_core::Position;
use nimbus_store::{Committed, Txn};
use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt as _};

/// A store that is read late, and refuses writes at times. Clones are the same.
#[derive(Clone)]
pub(crate) struct Faulty {
    store: Store,
    lag: Duration,
    calls: Arc<AtomicU32>,
    /// Watches that were begun while this was less say nothing any more.
    deaf: watch::Sender<u32>,
    /// What comes of each write, by its number.
    fault: fn(u32) -> Option<CommitError>,
}

// === impl Faulty ===

impl Faulty {
    /// What happens is seen so much later.
    pub(crate) fn lagging(store: &Store, lag: Duration) -> Self {
        Self { store: store.clone(), lag, calls: Arc::default(), deaf: watch::Sender::new(0), fault: |_| None }
    }

    /// From here on, watches that have begun already say nothing more, as if their connections were half open.
    pub(crate) fn deafen(&self) {
        self.deaf.send_modify(|deaf| *deaf += 1);
    }

    /// Some writes are refused.
    pub(crate) fn failing(store: &Store, fault: fn(u32) -> Option<CommitError>) -> Self {
        Self { fault, ..Self::lagging(store, Duration::ZERO) }
    }

    /// Writes so far.
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Source for Faulty {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let (lag, mut deaf) = (self.lag, self.deaf.subscribe());
        let begun = *deaf.borrow_and_update();
        self.store.watch(kind, from).then(move |event| {
            let is_deaf = *deaf.borrow() > begun;
            async move {
                tokio::time::sleep(lag).await;
                if is_deaf {
                    std::future::pending::<()>().await;
                }
                event
            }
        })
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        match (self.fault)(call) {
            Some(error) => Err(error),
            None => Source::commit(&self.store, txn).await,
        }
    }
}

impl Leases for Faulty {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        self.store.acquire(name, holder, ttl).await
    }

    async fn renew(&self, held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        self.store.renew(held).await
    }

    async fn release(&self, held: &[Guard]) -> Result<(), CommitError> {
        self.store.release(held).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Held>, CommitError> {
        self.store.list(prefix).await
    }
}
