//! What an instance shows of itself.

use std::{sync::Arc, time::Instant};

use nimbus_store::Guard;

use crate::instances::instance_id::InstanceId;

/// What an instance shows of itself; replaced as a whole whenever something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) standing: Standing,
    /// One for each shard; `None` where it is not ours.
    pub(crate) seats: Vec<Option<Seat>>,
    pub(crate) members: Vec<InstanceId>,
    /// Why the lease table does not answer.
    pub(crate) trouble: Option<Arc<str>>,
}

/// A shard that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// `None` if there are no others.
    pub(crate) guard: Option<Guard>,
    /// Tells apart what was lost and gained again.
    pub(crate) number: u64,
    pub(crate) since: Instant,
    /// When it ends unless it is renewed; `None` is never.
    pub(crate) until: Option<Instant>,
    pub(crate) draining: bool,
}

/// How an instance stands with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// It is not known to the others yet, or not any more because the lease table was out of reach.
    Joining,
    /// It has no shard, and is ready to take one over.
    Standby,
    /// It has shards.
    Active,
    /// It hands its shards over because it stops.
    Leaving,
    /// It has stopped.
    Left,
}

// === impl View ===

impl View {
    pub(crate) fn empty(shards: u32) -> Self {
        Self { standing: Standing::Joining, seats: vec![None; shards as usize], members: Vec::new(), trouble: None }
    }

    /// Nothing is ours any more.
    pub(crate) fn clear(&mut self) {
        self.standing = Standing::Left;
        self.seats.fill(None);
        self.members.clear();
    }
}
