//! A nimbus daemon, over gRPC: source, target and leases in one.

mod convert;
mod driven;
mod fault;
mod leaf;
mod link;
mod pending;
mod published;
mod reports;
mod sync;
mod watch;

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use nimbus_client::{Connector, Endpoint, Tcp};
use nimbus_core::{Backoff, Kind, ObjectKey, Position, PublisherId};
use nimbus_store::{Committed, Guard, Record, Txn};
use nimbus_wire::v1;
use tokio_stream::Stream;
use tonic::metadata::MetadataValue;

pub use self::sync::RemoteSync;
use self::{driven::Driven, link::Link, reports::Reports, watch::Watch};
use crate::{
    leases::{Acquired, Held, Leases},
    source::{CommitError, Event, Source, WatchError},
    target::{Target, TargetEvent},
};

/// A nimbus daemon. Cheap to clone; clones share one connection for calls.
///
/// It connects when it has to. A daemon that cannot be reached is no error: streams wait for it, and come back when it
/// does; calls fail with [`CommitError::Unavailable`].
///
/// - A watch gives its list as a whole, when the kind is complete: a daemon that was restarted and is still being
///   refilled is waited for. After that it gives what has changed, however often it reconnects.
/// - Whoever writes what they have read should compare uid and generation. A revision may be out of date without a change
///   that anybody would be told of: if a position has another epoch than the one before, objects that did not change keep
///   the revision that they had; and so do, if everything had to be compared, those that were changed and changed back.
/// - A call whose outcome is unknown is `Unavailable`, too: read again, and do it again if it did not happen.
///
/// ```
/// # use ctkit::{Remote, RemoteError};
/// # fn open() -> Result<Remote, RemoteError> {
/// Remote::builder("http://bus-1:7400").endpoint("http://bus-2:7400").identity("policies").build()
/// # }
/// # assert!(open().is_ok());
/// ```
#[derive(Clone)]
pub struct Remote {
    link: Arc<Link>,
}

/// Builds a [`Remote`].
#[must_use]
pub struct RemoteBuilder {
    endpoints: Vec<String>,
    identity: Option<String>,
    connector: Arc<dyn Connector>,
    reconnect: Backoff,
    deadline: Duration,
    seed: Option<u64>,
}

/// Why a remote could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// An endpoint is not one.
    #[error("endpoint {0}")]
    Endpoint(String),
    /// The identity is not one.
    #[error("identity {0:?} cannot be sent, expected printable ASCII")]
    Identity(String),
}

/// A daemon that is there answers within a fraction of this.
const DEADLINE: Duration = Duration::from_secs(10);

/// Controllers are few and everybody waits for them, so they come back sooner than agents do.
const RECONNECT: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(10) };

// === impl Remote ===

impl Remote {
    /// A daemon at that address. Does not wait for it.
    ///
    /// # Errors
    /// If it is not an address.
    pub fn connect(endpoint: &str) -> Result<Self, RemoteError> {
        Self::builder(endpoint).build()
    }

    /// Builds a remote that talks to a daemon at that address.
    pub fn builder(endpoint: &str) -> RemoteBuilder {
        RemoteBuilder {
            endpoints: vec![endpoint.to_owned()],
            identity: None,
            connector: Arc::new(Tcp),
            reconnect: RECONNECT,
            deadline: DEADLINE,
            seed: None,
        }
    }

    /// Makes the messages in an encoded `FileDescriptorSet` kinds, so that specs are checked before they are taken, and tools
    /// such as grpcurl can read them. Asking again changes nothing. A daemon in memory forgets them when it ends.
    ///
    /// # Errors
    /// If it is none, a kind would no longer read what was written with it, or the daemon cannot be reached.
    pub async fn register_kinds(&self, descriptor_set: &[u8]) -> Result<(), CommitError> {
        let descriptor_set = descriptor_set.to_vec().into();
        let request = v1::RegisterKindsRequest { descriptor_set, kinds: Vec::new() };
        let answer = self
            .link
            .call(request, |line, request| async move { line.publisher().register_kinds(request).await });
        answer.await.map(drop).map_err(|status| fault::commit(&status))
    }

    async fn apply(&self, txn: Txn) -> Result<Committed, CommitError> {
        let request = convert::apply(txn)?;
        // Whoever begins a sync keeps others from writing until the bus has taken note of it.
        let _pass = self.link.gate.read().await;
        let answer = self
            .link
            .call(request, |line, request| async move { line.publisher().apply(request).await });
        answer
            .await
            .map(|answer| convert::committed(&answer))
            .map_err(|status| fault::commit(&status))
    }
}

impl Source for Remote {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let watch = Watch::new(self.link.clone(), kind.clone(), from);
        Driven::new(|events| watch.run(events))
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.apply(txn).await
    }
}

impl Target for Remote {
    type Sync = RemoteSync;

    async fn commit(&self, txn: Txn) -> Result<Committed, CommitError> {
        self.apply(txn).await
    }

    async fn begin_sync(
        &self,
        publisher: PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<RemoteSync, CommitError> {
        RemoteSync::begin(&self.link, &publisher, fence, &kinds, &leases).await
    }

    async fn published(
        &self,
        publisher: &PublisherId,
        kinds: &BTreeSet<Kind>,
    ) -> Result<Vec<Arc<Record>>, CommitError> {
        published::list(&self.link, publisher, kinds)
            .await
            .map_err(|status| fault::commit(&status))
    }

    async fn propagation(&self, key: &ObjectKey) -> Result<v1::Propagation, CommitError> {
        let target = v1::Target { target: Some(v1::target::Target::Object(key.to_wire())) };
        let request = v1::GetPropagationRequest { target: Some(target), ..Default::default() };
        let answer = self
            .link
            .call(request, |line, request| async move { line.fleet().get_propagation(request).await });
        match answer.await {
            Ok(answer) => Ok(answer.propagation.unwrap_or_default()),
            Err(status) if status.code() == tonic::Code::NotFound => Err(CommitError::NotFound(key.clone())),
            Err(status) => Err(fault::commit(&status)),
        }
    }

    fn reports(&self, kinds: &BTreeSet<Kind>) -> impl Stream<Item = TargetEvent> + Send + 'static {
        let reports = Reports::new(self.link.clone(), kinds);
        Driven::new(|events| reports.run(events))
    }
}

impl Leases for Remote {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, CommitError> {
        let ttl_ms = u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX);
        let request = v1::AcquireRequest { name: name.to_owned(), holder: holder.to_owned(), ttl_ms };
        let answer = self
            .link
            .call(request, |line, request| async move { line.leases().acquire(request).await });
        let answer = answer.await.map_err(|status| fault::commit(&status))?;
        let lease = answer
            .lease
            .ok_or_else(|| CommitError::Unavailable("the daemon did not say who holds the lease".to_owned()))?;
        Ok(Acquired { granted: answer.granted, lease: held(lease) })
    }

    async fn renew(&self, held: &[Guard]) -> Result<Vec<Arc<str>>, CommitError> {
        let request = v1::RenewRequest { leases: convert::tokens(held) };
        let answer = self.link.call(request, |line, request| async move { line.leases().renew(request).await });
        let answer = answer.await.map_err(|status| fault::commit(&status))?;
        Ok(answer.lost.into_iter().map(Into::into).collect())
    }

    async fn release(&self, held: &[Guard]) -> Result<(), CommitError> {
        let request = v1::ReleaseRequest { leases: convert::tokens(held) };
        let answer = self
            .link
            .call(request, |line, request| async move { line.leases().release(request).await });
        answer.await.map(drop).map_err(|status| fault::commit(&status))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Held>, CommitError> {
        let request = v1::ListLeasesRequest { prefix: prefix.to_owned() };
        let answer = self
            .link
            .call(request, |line, request| async move { line.leases().list_leases(request).await });
        let answer = answer.await.map_err(|status| fault::commit(&status))?;
        Ok(answer.leases.into_iter().map(held).collect())
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("link", &self.link).finish()
    }
}

fn held(lease: v1::Lease) -> Held {
    Held {
        name: lease.name.into(),
        holder: lease.holder.into(),
        token: lease.token,
        expires_in: Duration::from_millis(lease.expires_in_ms),
    }
}

// === impl RemoteBuilder ===

impl RemoteBuilder {
    /// Another address of the same daemon, or of another that has the same objects.
    pub fn endpoint(mut self, endpoint: &str) -> Self {
        self.endpoints.push(endpoint.to_owned());
        self
    }

    /// Who calls. Whoever has an identity publishes under that name only.
    pub fn identity(mut self, identity: &str) -> Self {
        self.identity = Some(identity.to_owned());
        self
    }

    /// How connections are opened.
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.connector = Arc::new(connector);
        self
    }

    /// How long streams wait between attempts to reach the daemon.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.reconnect = backoff;
        self
    }

    /// A call that takes longer is given up.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Where randomness begins, so that a run can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks everything and makes the remote.
    ///
    /// # Errors
    /// If an address or the identity is not one.
    pub fn build(self) -> Result<Remote, RemoteError> {
        let endpoints = self.endpoints.iter().map(|endpoint| Endpoint::parse(endpoint));
        let endpoints = endpoints.collect::<Result<_, _>>().map_err(RemoteError::Endpoint)?;
        if let Some(identity) = &self.identity
            && MetadataValue::try_from(identity.as_str()).is_err()
        {
            return Err(RemoteError::Identity(identity.clone()));
        }
        let seed = self.seed.unwrap_or_else(rand::random);
        let link = Link::new(endpoints, self.connector, self.identity, self.reconnect, self.deadline, seed);
        Ok(Remote { link: Arc::new(link) })
    }
}

impl fmt::Debug for RemoteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteBuilder")
            .field("endpoints", &self.endpoints)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
