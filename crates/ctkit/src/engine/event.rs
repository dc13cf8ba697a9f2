//! What the engine hears of.

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey};
use nimbus_store::Record;
use tokio::sync::oneshot;

use crate::{
    engine::{
        observing::Observed, publishing::Synced, run::Finished, sending::Landed, station::StationId, writing::Written,
    },
    handle::{Dangling, Entry, Explanation},
    instances::ShardEvent,
    reflector::Batch,
    target::TargetEvent,
};

/// What the engine hears of.
pub(crate) enum Event {
    /// Objects of a kind have changed. What comes from a list that has not ended is there as it was read.
    Woken(Kind, Batch, Vec<Arc<Record>>),
    /// Reactions are over.
    Finished(Vec<Finished>),
    /// A transaction has reached the bus, or has not.
    Landed(Landed),
    /// A shard has begun to sync, or has ended.
    Synced(Synced),
    /// Statuses have reached the source, or have not.
    Written(Written),
    /// The bus has said something.
    Target(TargetEvent),
    /// What this instance may do has changed.
    Shard(ShardEvent),
    /// Somebody has looked at the real world.
    Observed(Observed),
    /// Somebody asks.
    Command(Command),
}

/// What can be asked of an engine that runs.
pub(crate) enum Command {
    /// What waits, why, and until when.
    Entries(oneshot::Sender<Vec<Entry>>),
    /// Why an object is as it is.
    Explain(StationId, ObjectKey, oneshot::Sender<Option<Explanation>>),
    /// What is referred to and does not exist.
    Dangling(StationId, oneshot::Sender<Vec<Dangling>>),
    /// Stop to react to an object, or to all of a controller.
    Pause(StationId, Option<ObjectKey>),
    /// Go on.
    Resume(StationId, Option<ObjectKey>),
    /// Look at an object now.
    Wake(StationId, ObjectKey),
    /// Say when nothing is left to do.
    Settled(oneshot::Sender<()>),
}
