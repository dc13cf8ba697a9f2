//! The calls of `Leases`: who may act when only one may.

use std::{sync::Arc, time::Duration};

use nimbus_store::{Acquired, Guard, Held, LeaseError};
use nimbus_wire::v1::{self, leases_server::Leases};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use crate::{fault, identity::Identity, inner::Inner};

/// The calls of `Leases`.
#[derive(Clone)]
pub(crate) struct Leasing(pub(crate) Arc<Inner>);

/// Leases end without anybody saying so. Operators look at the number of them, and a few seconds are soon enough.
const COUNT_INTERVAL: Duration = Duration::from_secs(5);

// === impl Leasing ===

#[tonic::async_trait]
impl Leases for Leasing {
    async fn acquire(&self, request: Request<v1::AcquireRequest>) -> Result<Response<v1::AcquireResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let v1::AcquireRequest { name, holder, ttl_ms } = request.into_inner();
        let holder = identity.holder(&holder)?;
        let acquired = self.0.acquire(&name, holder, Duration::from_millis(ttl_ms.into())).await;
        let acquired = acquired.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::AcquireResponse { granted: acquired.granted, lease: Some(lease(&acquired.lease)) }))
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Result<Response<v1::RenewResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let guards = self.own(&identity, &request.into_inner().leases)?;
        let lost = self.0.renew(&guards).iter().map(ToString::to_string).collect();
        Ok(Response::new(v1::RenewResponse { lost }))
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Result<Response<v1::ReleaseResponse>, Status> {
        let identity = Identity::of(request.metadata());
        let guards = self.own(&identity, &request.into_inner().leases)?;
        self.0.release(&guards);
        Ok(Response::new(v1::ReleaseResponse {}))
    }

    async fn list_leases(
        &self,
        request: Request<v1::ListLeasesRequest>,
    ) -> Result<Response<v1::ListLeasesResponse>, Status> {
        let held = self.0.leases(&request.into_inner().prefix).await.map_err(|error| refused(&error))?;
        Ok(Response::new(v1::ListLeasesResponse { leases: held.iter().map(lease).collect() }))
    }
}

impl Leasing {
    /// Tokens that the caller may use: anybody can read them, so they alone prove nothing.
    fn own(&self, identity: &Identity, tokens: &[v1::LeaseToken]) -> Result<Vec<Guard>, Status> {
        let guards = self.0.guards(tokens)?;
        for holder in guards.iter().filter_map(|guard| self.0.store.lease_holder(guard)) {
            identity.holder(&holder)?;
        }
        Ok(guards)
    }
}

// === impl Inner ===

impl Inner {
    /// Takes a lease that is free, has ended, or is the holder's own already.
    pub(crate) async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, LeaseError> {
        let acquired = match self.store.submit_acquire(name, holder, ttl, Instant::now().into_std()) {
            Ok(ticket) => ticket.await.map_err(LeaseError::from),
            Err(error) => Err(error),
        };
        match &acquired {
            Ok(acquired) if acquired.changed => {
                self.metrics.leases_acquired.inc();
                self.count_leases();
            }
            Err(LeaseError::Full { .. }) => self.metrics.refuse("leases"),
            _ => {}
        }
        acquired
    }

    /// Holds on to leases, and names those that are lost.
    pub(crate) fn renew(&self, guards: &[Guard]) -> Vec<Arc<str>> {
        let lost = self.store.renew(guards, Instant::now().into_std());
        self.metrics.leases_lost.inc_by(lost.len() as u64);
        lost
    }

    /// Gives leases back.
    pub(crate) fn release(&self, guards: &[Guard]) {
        self.store.release(guards, Instant::now().into_std());
        self.count_leases();
    }

    /// Leases that are held, and whose names begin like this.
    pub(crate) async fn leases(&self, prefix: &str) -> Result<Vec<Held>, LeaseError> {
        Ok(self.store.leases(prefix, Instant::now().into_std()).await?)
    }

    /// Tokens in the words of the store. Nobody has more than there can be.
    pub(crate) fn guards(&self, tokens: &[v1::LeaseToken]) -> Result<Vec<Guard>, Status> {
        self.converter().at_most("leases", tokens.len(), self.config.limits.store.leases)?;
        let guard = |lease: &v1::LeaseToken| Guard { lease: lease.name.as_str().into(), token: lease.token };
        Ok(tokens.iter().map(guard).collect())
    }

    /// Counts the leases now and then, and looks whether the disk is still there: if it failed while nobody waited for a
    /// write, nobody else notices.
    pub(crate) async fn keep_counting(&self) {
        let mut failed = false;
        loop {
            tokio::time::sleep(COUNT_INTERVAL).await;
            self.count_leases();
            if self.store.failure().is_some() && !std::mem::replace(&mut failed, true) {
                self.readiness.mark();
            }
        }
    }

    pub(crate) fn count_leases(&self) {
        self.metrics.set_leases(self.store.count_leases(Instant::now().into_std()));
    }
}

fn lease(held: &Held) -> v1::Lease {
    v1::Lease {
        name: held.name.to_string(),
        holder: held.holder.to_string(),
        token: held.token,
        expires_in_ms: u64::try_from(held.expires_in.as_millis()).unwrap_or(u64::MAX),
    }
}

fn refused(error: &LeaseError) -> Status {
    match error {
        LeaseError::Name(invalid) if invalid.what == "holder" => fault::field("holder", invalid),
        LeaseError::Name(invalid) => fault::field("name", invalid),
        LeaseError::Full { .. } => fault::full("leases", error.to_string()),
        LeaseError::Lost(lost) => fault::lost(lost),
        _ => fault::bad("ttl_ms", error.to_string()),
    }
}
