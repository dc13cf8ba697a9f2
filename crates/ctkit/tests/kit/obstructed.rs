//! A bus of which parts do not get through until they are let.

use std::{collections::BTreeSet, sync::Arc};

use ctkit::{
    CommitError, Guard, Kind, ObjectKey, OpenSync, Record, Remote, RemoteSync, SyncEnded, Target, TargetEvent, Txn,
};
use nimbus_core::PublisherId;
use nimbus_store::Committed;
use nimbus_wire::v1;
use tokio::sync::watch;
use tokio_stream::{Stream, StreamExt as _};

/// What is let through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Open {
    /// What the bus says: that it is there, and what agents report.
    pub(crate) reports: bool,
    /// The ends of syncs.
    pub(crate) ends: bool,
    /// So many ends of syncs are refused; each that is makes it one less.
    pub(crate) refused: u32,
}

/// A bus of which parts do not get through until they are let.
pub(crate) struct Obstructed {
    remote: Remote,
    open: watch::Sender<Open>,
}

/// A sync whose end waits until it is let through.
pub(crate) struct ObstructedSync {
    sync: RemoteSync,
    open: watch::Sender<Open>,
}

/// Waits until something is let through.
async fn pass(open: watch::Sender<Open>, is_open: fn(&Open) -> bool) {
    open.subscribe()
        .wait_for(is_open)
        .await
        .expect("whoever obstructs is there until the end");
}

// === impl Obstructed ===

impl Obstructed {
    pub(crate) fn new(remote: Remote, open: &watch::Sender<Open>) -> Self {
        Self { remote, open: open.clone() }
    }
}

impl Target for Obstructed {
    type Sync = ObstructedSync;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        Target::commit(&self.remote, txn).await
    }

    async fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<ObstructedSync, CommitError> {
        let sync = self.remote.begin_sync(publisher, fence, kinds, leases).await?;
        Ok(ObstructedSync { sync, open: self.open.clone() })
    }

    async fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> Result<Vec<Arc<Record>>, CommitError> {
        self.remote.published(publisher, kinds).await
    }

    async fn propagation(&self, key: &ObjectKey) -> Result<v1::Propagation, CommitError> {
        self.remote.propagation(key).await
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        let (open, reports) = (self.open.clone(), self.remote.reports(kinds));
        // Nothing connects before somebody asks for the first report.
        let nothing = tokio_stream::once(open)
            .then(|open| pass(open, |open| open.reports))
            .filter_map(|()| None);
        nothing.chain(reports)
    }
}

impl OpenSync for ObstructedSync {
    async fn keep(&mut self, keys: Vec<ObjectKey>) -> Result<(), CommitError> {
        pass(self.open.clone(), |open| open.ends).await;
        self.sync.keep(keys).await
    }

    async fn end(self) -> Result<SyncEnded, CommitError> {
        let refused = self.open.send_if_modified(|open| {
            let is_refused = open.refused > 0;
            open.refused -= u32::from(is_refused);
            is_refused
        });
        if refused {
            return Err(CommitError::Unavailable("not now".into()));
        }
        self.sync.end().await
    }
}
