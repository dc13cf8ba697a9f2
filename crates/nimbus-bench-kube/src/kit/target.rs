//! Where the children go: a stand-in for the bus, in this process.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use ctkit::{CommitError, Guard, OpenSync, Record, SyncEnded, Target, TargetEvent};
use nimbus_core::{Epoch, KeyHashes, KeyMap, Kind, ObjectKey, PublisherId, Revision};
use nimbus_store::{Committed, Draft, Effect, Op, Outcome, Step, SyncSummary, Txn};
use nimbus_wire::v1;
use parking_lot::Mutex;
use tokio_stream::{Stream, StreamExt as _};

use crate::progress::Progress;

/// A target that says what was created.
pub(crate) struct Counted<T> {
    target: T,
    progress: Arc<Progress>,
}

/// Takes children, encoded as they would travel, into a map by what they are called.
#[derive(Clone)]
pub(crate) struct Map {
    children: Arc<Mutex<KeyMap<Bytes>>>,
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
    /// With room for so many.
    pub(crate) fn new(children: usize) -> Self {
        Self { children: Arc::new(Mutex::new(KeyMap::with_capacity_and_hasher(children, KeyHashes::default()))) }
    }

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
        let encode = |step: &Step| match &step.op {
            Op::Upsert(draft) => Ok((draft.key.clone(), draft.encoded(&txn.publisher, revision).into())),
            _ => Err(CommitError::Invalid { key: None, message: "children are published only".to_owned() }),
        };
        let encoded: Vec<(ObjectKey, Bytes)> = txn.steps.iter().map(encode).collect::<Result<_, _>>()?;
        let mut children = self.children.lock();
        let written = encoded.into_iter().map(|(key, child)| children.insert(key, child));
        let effects = written.map(|before| if before.is_some() { Effect::Updated } else { Effect::Created });
        let outcome = |(effect, step): (Effect, &Step)| {
            let Op::Upsert(Draft { uid, generation, .. }) = &step.op else { unreachable!("it was encoded") };
            Outcome { effect, uid: uid.clone(), generation: generation.unwrap_or_default(), revision }
        };
        Ok(Committed { revision, outcomes: effects.zip(&txn.steps).map(outcome).collect() })
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
