//! Where reactors publish, and where agents report.

use std::{collections::BTreeSet, future::Future, sync::Arc};

use nimbus_core::{Epoch, Kind, ObjectKey, PublisherId, Revision};
use nimbus_store::{Committed, Guard, Record, SyncSummary, Txn};
use nimbus_wire::v1;
use tokio_stream::Stream;

use crate::source::CommitError;

/// Where reactors publish, and where agents report: a bus.
pub trait Target: Send + Sync + 'static {
    /// A sync that has begun. Dropping it gives it up: nothing is deleted.
    type Sync: OpenSync;

    /// Makes all changes of a transaction, or none.
    fn commit(&self, txn: Txn) -> impl Future<Output = Result<Committed, CommitError>> + Send;

    /// Begins to say everything that a publisher wants to exist. What it commits from here on counts as said.
    fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> impl Future<Output = Result<Self::Sync, CommitError>> + Send;

    /// What a publisher has there now, of these kinds.
    fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> impl Future<Output = Result<Vec<Arc<Record>>, CommitError>> + Send;

    /// How far an object, or its end, has come.
    fn propagation(&self, key: &ObjectKey) -> impl Future<Output = Result<v1::Propagation, CommitError>> + Send;

    /// What agents report about these kinds, as it changes, and when the bus is another one. Reconnects by itself.
    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static;
}

/// A sync that has begun.
pub trait OpenSync: Send + 'static {
    /// Says that these should exist as they are, whatever that is by now, for those that nobody published again.
    fn keep(&mut self, keys: Vec<ObjectKey>) -> impl Future<Output = Result<(), CommitError>> + Send;

    /// Ends it: what the publisher has there and did not say is deleted, and its kinds are complete.
    fn end(self) -> impl Future<Output = Result<SyncEnded, CommitError>> + Send;
}

/// How a sync ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncEnded {
    /// Which bus it was that was told everything; none if there was nothing to tell.
    pub epoch: Option<Epoch>,
    /// The newest revision then.
    pub revision: Revision,
    /// What it did.
    pub summary: SyncSummary,
}

/// What a bus says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TargetEvent {
    /// Connected. If the epoch is another one than before, everything must be published again.
    Connected(Epoch),
    /// Replaces what was known of this agent.
    Report(Box<v1::AgentReport>),
    /// The agent is no longer remembered.
    Forgotten(String),
    /// Everything that was known has been said; what was not named since `Connected` is unknown there.
    CaughtUp,
}
