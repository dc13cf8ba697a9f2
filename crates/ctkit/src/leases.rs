//! Where instances agree on who does what.

use std::{future::Future, sync::Arc, time::Duration};

use nimbus_store::Guard;

use crate::source::CommitError;

/// Where instances agree on who does what.
pub trait Leases: Send + Sync + 'static {
    /// Takes a lease that is free, has ended, or is the holder's own already.
    fn acquire(
        &self,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<Acquired, CommitError>> + Send;

    /// Holds on to leases, and names those that are lost.
    fn renew(&self, held: &[Guard]) -> impl Future<Output = Result<Vec<Arc<str>>, CommitError>> + Send;

    /// Gives leases back.
    fn release(&self, held: &[Guard]) -> impl Future<Output = Result<(), CommitError>> + Send;

    /// Leases that are held, and whose names begin like this.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<Held>, CommitError>> + Send;
}

/// What came of an attempt to take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquired {
    /// Whether it was taken.
    pub granted: bool,
    /// The lease as it is, whoever holds it.
    pub lease: Held,
}

/// A lease that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub name: Arc<str>,
    /// One instance of a program.
    pub holder: Arc<str>,
    /// Rises with every change of the holder.
    pub token: u64,
    /// Until it ends by itself.
    pub expires_in: Duration,
}
