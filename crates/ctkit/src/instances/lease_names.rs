//! What the leases of a controller are called.

use std::sync::Arc;

use crate::{
    instances::{instance_id::InstanceId, shard::Shard},
    leases::Held,
};

/// What the leases of a controller are called.
#[derive(Debug, Clone)]
pub(crate) struct LeaseNames {
    controller: Arc<str>,
}

/// What a lease of a controller is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its holder lives.
    Member(InstanceId),
    /// Its holder may act on this shard.
    Shard(Shard),
}

// === impl LeaseNames ===

impl LeaseNames {
    pub(crate) fn new(controller: &str) -> Self {
        Self { controller: controller.into() }
    }

    /// How the names of all leases of this controller begin, and perhaps those of some others.
    pub(crate) fn prefix(&self) -> String {
        format!("{}.", self.controller)
    }

    pub(crate) fn member(&self, instance: &InstanceId) -> Arc<str> {
        format!("{}.member-{instance}", self.controller).into()
    }

    pub(crate) fn shard(&self, shard: Shard) -> Arc<str> {
        format!("{}.shard-{shard}", self.controller).into()
    }

    /// What a listed lease is for; `None` if it is not of this controller.
    pub(crate) fn purpose(&self, lease: &Held) -> Option<Purpose> {
        let rest = lease.name.strip_prefix(&*self.controller)?.strip_prefix('.')?;
        if let Some(index) = rest.strip_prefix("shard-") {
            return index.parse().ok().map(|index| Purpose::Shard(Shard::new(index)));
        }
        // Another controller may be called like a member of this one; its leases are held under other names.
        let member = rest.strip_prefix("member-")?;
        (member == &*lease.holder).then(|| Purpose::Member(lease.holder.clone().into()))
    }
}
