//! Targets without their types, so that one engine serves all of them.

use std::{collections::BTreeSet, future::Future, pin::Pin, sync::Arc};

use nimbus_core::{Kind, ObjectKey, PublisherId};
use nimbus_store::{Committed, Guard, Record, Txn};
use nimbus_wire::v1;
use tokio_stream::Stream;

use crate::{
    source::{CommitError, Source},
    target::{OpenSync, SyncEnded, Target, TargetEvent},
};

/// Something that comes later.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, CommitError>> + Send + 'a>>;

/// A transaction under way.
pub(crate) type BoxCommit = Later<'static, Committed>;

/// A sync of whatever target.
pub(crate) type BoxSync = Box<dyn ErasedSync>;

/// Where transactions of whatever source go.
pub(crate) trait ErasedWriter: Send + Sync {
    fn commit(&self, txn: Txn) -> BoxCommit;
}

/// A bus of whatever sort.
pub(crate) trait ErasedTarget: Send + Sync {
    fn commit(&self, txn: Txn) -> BoxCommit;
    fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Later<'_, BoxSync>;
    fn published<'a>(&'a self, publisher: &'a PublisherId, kinds: &'a BTreeSet<Kind>) -> Later<'a, Vec<Arc<Record>>>;
    fn propagation<'a>(&'a self, key: &'a ObjectKey) -> Later<'a, v1::Propagation>;
    fn reports(&self, kinds: &BTreeSet<Kind>) -> Pin<Box<dyn Stream<Item = TargetEvent> + Send>>;
}

/// A sync of whatever target.
pub(crate) trait ErasedSync: Send {
    fn keep(&mut self, keys: Vec<ObjectKey>) -> Later<'_, ()>;
    fn end(self: Box<Self>) -> Later<'static, SyncEnded>;
}

/// A sync that is none: nothing is kept, and nothing is deleted.
pub(crate) struct NoSync;

/// A source or target that is shared with what it has begun.
pub(crate) struct Shared<T>(pub(crate) Arc<T>);

// === impl Shared ===

impl<S: Source> ErasedWriter for Shared<S> {
    fn commit(&self, txn: Txn) -> BoxCommit {
        let source = self.0.clone();
        Box::pin(async move { source.commit(txn).await })
    }
}

impl<T: Target> ErasedTarget for Shared<T> {
    fn commit(&self, txn: Txn) -> BoxCommit {
        let target = self.0.clone();
        Box::pin(async move { target.commit(txn).await })
    }

    fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Later<'_, BoxSync> {
        Box::pin(async move {
            let sync = self.0.begin_sync(publisher, fence, kinds, leases).await?;
            Ok(Box::new(Some(sync)) as BoxSync)
        })
    }

    fn published<'a>(&'a self, publisher: &'a PublisherId, kinds: &'a BTreeSet<Kind>) -> Later<'a, Vec<Arc<Record>>> {
        Box::pin(self.0.published(publisher, kinds))
    }

    fn propagation<'a>(&'a self, key: &'a ObjectKey) -> Later<'a, v1::Propagation> {
        Box::pin(self.0.propagation(key))
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> Pin<Box<dyn Stream<Item = TargetEvent> + Send>> {
        Box::pin(self.0.reports(kinds))
    }
}

// === impl ErasedSync ===

impl ErasedSync for NoSync {
    fn keep(&mut self, _keys: Vec<ObjectKey>) -> Later<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn end(self: Box<Self>) -> Later<'static, SyncEnded> {
        Box::pin(async { Ok(SyncEnded::default()) })
    }
}

impl<S: OpenSync> ErasedSync for Option<S> {
    fn keep(&mut self, keys: Vec<ObjectKey>) -> Later<'_, ()> {
        let sync = self.as_mut().expect("it has not ended");
        Box::pin(sync.keep(keys))
    }

    fn end(mut self: Box<Self>) -> Later<'static, SyncEnded> {
        let sync = self.take().expect("it has not ended");
        Box::pin(async move { sync.end().await })
    }
}
