//! Where the children go: a stand-in for the bus, in this process.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use ctkit::{CommitError, Guard, OpenSync, Record, SyncEnded, Target, TargetEvent};
use nimbus_core::{Epoch, Kind, ObjectKey, PublisherId, Revision};
use nimbus_store::{Committed, Effect, Op, Outcome, SyncSummary, Txn};
use nimbus_wire::v1;
use parking_lot::Mutex;
use tokio_stream::{Stream, StreamExt as _};

use crate::progress::Progress;

/// A target that says what was created.
pub(crate) struct Counted<T> {
    target: T,
    progress: Arc<Progress>,
}

/// Takes children, encoded as they would travel, into a map by name.
#[derive(Clone, Default)]
pub(crate) struct Map {
    children: Arc<Mutex<HashMap<String, Bytes>>>,
}

/// A sync with nothing to sweep.
pub(crate) struct NoSweep;

// === impl Counted ===

impl<T> Counted<T> {
    pub(crate) fn new(target: T, progress: Arc<Progress>) -> Self {
        Self { target, progress }
    }
}

impl<T: Target> Target for Counted<T> {
    type Sync = T::Sync;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        let committed = self.target.commit(txn).await?;
        let created = committed.outcomes.iter().filter(|outcome| outcome.effect == Effect::Created).count();
        self.progress.wrote(created as u64);
        Ok(committed)
    }

    async fn commit_shared(&self, txn: Arc<Txn>) -> Result<Committed, CommitError> {
        let committed = self.target.commit_shared(txn).await?;
        let created = committed.outcomes.iter().filter(|outcome| outcome.effect == Effect::Created).count();
        self.progress.wrote(created as u64);
        Ok(committed)
    }

    fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> impl Future<Output = Result<T::Sync, CommitError>> + Send {
        self.target.begin_sync(publisher, fence, kinds, leases)
    }

    fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> impl Future<Output = Result<Vec<Arc<Record>>, CommitError>> + Send {
        self.target.published(publisher, kinds)
    }

    fn propagation(&self, key: &ObjectKey) -> impl Future<Output = Result<v1::Propagation, CommitError>> + Send {
        self.target.propagation(key)
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        self.target.reports(kinds)
    }
}

// === impl Map ===

impl Map {
    pub(crate) fn len(&self) -> usize {
        self.children.lock().len()
    }
}

impl Target for Map {
    type Sync = NoSweep;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.commit_shared(Arc::new(txn)).await
    }

    async fn commit_shared(&self, txn: Arc<Txn>) -> Result<Committed, CommitError> {
        let revision = Revision(1);
        let mut outcomes = Vec::with_capacity(txn.steps.len());
        let mut children = self.children.lock();
        for step in &txn.steps {
            let Op::Upsert(draft) = &step.op else {
                return Err(CommitError::Invalid { key: None, message: "children are published only".to_owned() });
            };
            let (name, uid, generation) = (draft.key.name().to_owned(), draft.uid.clone(), draft.generation);
            let before = children.insert(name, draft.encoded(&txn.publisher, revision).into());
            let effect = if before.is_some() { Effect::Updated } else { Effect::Created };
            outcomes.push(Outcome { effect, uid, generation: generation.unwrap_or_default(), revision });
        }
        Ok(Committed { revision, outcomes })
    }

    async fn begin_sync(
        &self,
        _publisher: PublisherId,
        _fence: u64,
        _kinds: BTreeSet<Kind>,
        _leases: Vec<Guard>,
    ) -> Result<NoSweep, CommitError> {
        Ok(NoSweep)
    }

    async fn published(
        &self,
        _publisher: &PublisherId,
        _kinds: &BTreeSet<Kind>,
    ) -> Result<Vec<Arc<Record>>, CommitError> {
        Ok(Vec::new())
    }

    async fn propagation(&self, _key: &ObjectKey) -> Result<v1::Propagation, CommitError> {
        Ok(v1::Propagation::default())
    }

    fn reports(&self, _kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        tokio_stream::iter([TargetEvent::Connected(Epoch(1)), TargetEvent::CaughtUp]).chain(tokio_stream::pending())
    }
}

// === impl NoSweep ===

impl OpenSync for NoSweep {
    async fn keep(&mut self, _keys: Vec<ObjectKey>) -> Result<(), CommitError> {
        Ok(())
    }

    async fn end(self) -> Result<SyncEnded, CommitError> {
        Ok(SyncEnded { epoch: Some(Epoch(1)), revision: Revision(1), summary: SyncSummary::default() })
    }
}
