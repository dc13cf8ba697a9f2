//! A lease table for controllers that need none.

use std::{sync::Arc, time::Duration};

use nimbus_store::Guard;

use crate::{
    leases::{Acquired, Held, Leases},
    source::CommitError,
};

/// A lease table for controllers that need none, because they are alone. It gives nothing to anybody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLeases;

// === impl NoLeases ===

impl NoLeases {
    fn refuse<T>() -> Result<T, CommitError> {
        Err(CommitError::Unavailable("there is no lease table (hint: should the controller be alone?)".into()))
    }
}

impl Leases for NoLeases {
    async fn acquire(&self, _name: &str, _holder: &str, _ttl: Duration) -> Result<Acquired, CommitError> {
        Self::refuse()
    }

    async fn renew(&self, _held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        Self::refuse()
    }

    async fn release(&self, _held: &[Guard]) -> Result<(), CommitError> {
        Self::refuse()
    }

    async fn list(&self, _prefix: &str) -> Result<Vec<Held>, CommitError> {
        Self::refuse()
    }
}
