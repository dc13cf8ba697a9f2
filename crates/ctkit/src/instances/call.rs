//! What an instance asks of the lease table.

use std::{sync::Arc, time::Duration};

use nimbus_store::Guard;

use crate::{
    instances::{instance_id::InstanceId, shard::Shard},
    leases::{Acquired, Held, Leases},
    source::CommitError,
};

/// Which question it is; each is asked by one call at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Topic {
    Join,
    Look,
    Renew,
    Release,
    Acquire(Shard),
}

/// A question.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Acquire(Arc<str>),
    Renew(Vec<Guard>),
    Release(Vec<Guard>),
    List,
}

/// What the table says.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Acquired(Acquired),
    /// Those that are lost.
    Renewed(Vec<Arc<str>>),
    Released,
    Listed(Vec<Held>),
}

// === impl Call ===

impl Call {
    pub(crate) async fn make<L: Leases>(
        self,
        leases: &L,
        prefix: &str,
        holder: &InstanceId,
        ttl: Duration,
    ) -> Result<Answer, CommitError> {
        match self {
            Self::Acquire(name) => leases.acquire(&name, holder.as_str(), ttl).await.map(Answer::Acquired),
            Self::Renew(guards) => leases.renew(&guards).await.map(Answer::Renewed),
            Self::Release(guards) => leases.release(&guards).await.map(|()| Answer::Released),
            Self::List => leases.list(prefix).await.map(Answer::Listed),
        }
    }
}
