//! The publisher that puts load on the bus.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use nimbus_wire::v1::{self, sync_request::Step};
use tokio_stream::Stream;

use crate::{client::Connection, objects::KIND};

/// The publisher that puts load on the bus.
#[derive(Debug, Clone)]
pub(crate) struct Publisher(pub(crate) Connection);

const NAME: &str = "bench";

/// Objects in one message of a sync.
const SYNC_ITEMS: usize = 256;

// === impl Publisher ===

impl Publisher {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Connection::open(address).await.context("the publisher cannot connect").map(Self)
    }

    /// Makes these objects all that there is, and returns the revision at which they are.
    pub(crate) async fn sync(&self, objects: impl Iterator<Item = v1::Object> + Send + 'static) -> anyhow::Result<u64> {
        let objects: Vec<_> = objects.collect();
        let items: Vec<_> = items(&objects).collect();
        let steps = std::iter::once(begin()).chain(items).chain(std::iter::once(end()));
        Ok(self.sync_steps(tokio_stream::iter(steps)).await?.revision)
    }

    /// The same with so many objects that they are better made as they are sent.
    pub(crate) async fn sync_lazily(
        &self,
        objects: impl Iterator<Item = v1::Object> + Send + 'static,
    ) -> anyhow::Result<u64> {
        let mut objects = objects.peekable();
        let items = std::iter::from_fn(move || {
            objects.peek()?;
            let objects = objects.by_ref().take(SYNC_ITEMS).collect();
            Some(v1::SyncRequest { step: Some(Step::Items(v1::SyncItems { objects })) })
        });
        let steps = std::iter::once(begin()).chain(items).chain(std::iter::once(end()));
        Ok(self.sync_steps(tokio_stream::iter(steps)).await?.revision)
    }

    /// Sends the steps of a sync as they come.
    pub(crate) async fn sync_steps(
        &self,
        steps: impl Stream<Item = v1::SyncRequest> + Send + 'static,
    ) -> anyhow::Result<v1::SyncResponse> {
        Ok(self.0.publisher().sync(steps).await.context("the sync failed")?.into_inner())
    }

    /// Updates objects in one transaction, and returns its revision.
    pub(crate) async fn update(&self, objects: Vec<v1::Object>) -> anyhow::Result<u64> {
        let op = |object| v1::Op { op: Some(v1::op::Op::Upsert(object)), ..v1::Op::default() };
        let ops = objects.into_iter().map(op).collect();
        let request = v1::ApplyRequest { publisher: NAME.to_owned(), ops, ..v1::ApplyRequest::default() };
        let response = self.0.publisher().apply(request).await.context("a transaction failed")?.into_inner();
        let updated = response.outcomes.iter().all(|outcome| outcome.result() == v1::Result::Updated);
        ensure!(updated, "a transaction did not update everything in it");
        Ok(response.revision)
    }
}

/// The first step of a sync.
pub(crate) fn begin() -> v1::SyncRequest {
    let begin = v1::SyncBegin { publisher: NAME.to_owned(), fence: 0, kinds: vec![KIND.to_owned()], leases: vec![] };
    v1::SyncRequest { step: Some(Step::Begin(begin)) }
}

/// The steps with these objects.
pub(crate) fn items(objects: &[v1::Object]) -> impl Iterator<Item = v1::SyncRequest> {
    objects
        .chunks(SYNC_ITEMS)
        .map(|chunk| v1::SyncRequest { step: Some(Step::Items(v1::SyncItems { objects: chunk.to_vec() })) })
}

/// The last step of a sync.
pub(crate) fn end() -> v1::SyncRequest {
    v1::SyncRequest { step: Some(Step::End(v1::SyncEnd {})) }
}
