//! A bus inside a program: the same calls without the network.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use nimbus_core::{Kind, PublisherId};
use nimbus_store::{Acquired, Committed, Guard, Held, LeaseError, Refused, Txn};
use nimbus_wire::v1::fleet_server::Fleet;

use crate::{fleet::FleetService, server::Bus, writing::OpenSync};

/// For the program that the bus is a part of: everything that clients can do, with the same checks and the same effects.
impl Bus {
    /// Makes all changes of a transaction, or none.
    ///
    /// # Errors
    /// If any part of it is refused; then nothing has changed.
    pub async fn submit(&self, txn: &Txn) -> Result<Committed, Refused> {
        match self.inner.with_declared(txn)? {
            Some(txn) => self.inner.submit(&txn).await,
            None => self.inner.submit(txn).await,
        }
    }

    /// Begins to say everything that a publisher wants to exist. What it submits from here on counts as said.
    ///
    /// # Errors
    /// If the publisher is fenced, a lease is lost, or there are too many kinds or publishers.
    pub async fn begin_sync(
        &self,
        publisher: &PublisherId,
        fence: u64,
        kinds: &BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<OpenSync, Refused> {
        self.inner.begin_sync(publisher, fence, kinds, leases).await
    }

    /// The calls that ask about agents.
    pub fn fleet_service(&self) -> impl Fleet + Clone {
        FleetService(self.inner.clone())
    }

    /// Takes a lease that is free, has ended, or is the holder's own already.
    ///
    /// # Errors
    /// If nobody could be given a lease like this.
    pub async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, LeaseError> {
        self.inner.acquire(name, holder, ttl).await
    }

    /// Holds on to leases for as long again, and names those that are lost.
    pub fn renew(&self, held: &[Guard]) -> Vec<Arc<str>> {
        self.inner.renew(held)
    }

    /// Gives leases back; those that somebody else was given since are left alone.
    pub fn release(&self, held: &[Guard]) {
        self.inner.release(held);
    }

    /// Leases that are held, and whose names begin like this, in the order of their names.
    ///
    /// # Errors
    /// If the disk has failed: then nobody can say who holds them.
    pub async fn leases(&self, prefix: &str) -> Result<Vec<Held>, LeaseError> {
        self.inner.leases(prefix).await
    }
}
