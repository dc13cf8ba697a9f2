//! The bus as a whole: its services on connections that are given to it.

use std::{future::Future, path::Path, sync::Arc};

#[cfg(feature = "sim")]
use nimbus_store::DrivenDisk;
use nimbus_store::{Collection, OpenError};
use nimbus_wire::v1::{fleet_server::FleetServer, leases_server::LeasesServer, publisher_server::PublisherServer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{
    Code, Status,
    body::Body,
    service::Routes,
    transport::{Server, server::Connected},
};
use tonic_health::{
    ServingStatus,
    pb::health_server::HealthServer,
    server::{HealthReporter, HealthService},
};
use tower::util::{MapRequestLayer, MapResponseLayer};

use crate::{
    config::Config, connections::Connections, fault, fleet::FleetService, handshake::Handshake, inner::Inner,
    leasing::Leasing, metrics::Metrics, publishing::Publishing, readiness::Unready, reflection, schemas::Schemas,
    subscribe::BusService,
};

/// A bus. Cheap to clone; all clones are the same bus.
#[derive(Clone)]
pub struct Bus {
    pub(crate) inner: Arc<Inner>,
    health: HealthServer<HealthService>,
}

/// Why a bus stopped serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The transport failed.
    #[error("the transport failed")]
    Transport(#[from] tonic::transport::Error),
}

/// Room for the metadata of a call. Nobody needs more, and a header block is held in memory.
const MAX_HEADERS: u32 = 16 << 10;

/// Streams that a client opens and resets at once cost it little and us a lot; beyond this, the connection ends.
const MAX_RESET_STREAMS: usize = 64;

const SERVICES: [&str; 5] = ["", "nimbus.v1.Bus", "nimbus.v1.Publisher", "nimbus.v1.Fleet", "nimbus.v1.Leases"];

// === impl Bus ===

impl Bus {
    /// A bus with an empty collection.
    pub fn new(config: Config, metrics: Metrics) -> Self {
        let open = |config| Ok(Collection::new(config));
        Self::make(config, false, open, metrics).expect("memory needs no opening")
    }

    /// A bus with a durable collection, which is made if there is no such file. It goes on with the epoch of the file;
    /// that of the configuration is for a new one.
    ///
    /// # Errors
    /// If the file is damaged, of a newer version, in use, or cannot be read.
    pub fn open(path: &Path, config: Config, metrics: Metrics) -> Result<Self, OpenError> {
        Self::make(config, true, |config| Collection::open(path, config), metrics)
    }

    /// As [`Bus::open`], on a disk that writes when it is told to; see [`Collection::open_driven`].
    ///
    /// # Errors
    /// As [`Bus::open`].
    #[cfg(feature = "sim")]
    pub fn open_driven(path: &Path, config: Config, metrics: Metrics) -> Result<(Self, DrivenDisk), OpenError> {
        let mut disk = None;
        let open = |config| {
            // So little that simulations see it full.
            let config = nimbus_store::Config { log_bytes: 4 << 10, ..config };
            let (collection, opened) = Collection::open_driven(path, config)?;
            disk = Some(opened);
            Ok(collection)
        };
        let bus = Self::make(config, true, open, metrics)?;
        Ok((bus, disk.expect("it was opened with the collection")))
    }

    fn make(
        config: Config,
        durable: bool,
        open: impl FnOnce(nimbus_store::Config) -> Result<Collection, OpenError>,
        metrics: Metrics,
    ) -> Result<Self, OpenError> {
        let reporter = HealthReporter::new();
        let health = HealthServer::new(HealthService::from_health_reporter(reporter.clone()));
        Ok(Self { inner: Arc::new(Inner::new(config, durable, open, metrics, reporter)?), health })
    }

    /// The collection that it serves.
    pub fn store(&self) -> &Collection {
        &self.inner.store
    }

    /// The kinds that were registered.
    pub fn schemas(&self) -> &Schemas {
        &self.inner.schemas
    }

    /// What keeps it from being ready: it is shutting down, the disk has failed, or kinds are not complete. The health
    /// service says `nimbus.ready` when there is nothing.
    pub fn unready(&self) -> Vec<Unready> {
        self.inner.unready()
    }

    /// Brings those metrics up to date that are looked up rather than counted: call it before they are read.
    ///
    /// Takes a millisecond or two for ten thousand agents.
    pub fn observe(&self) {
        self.inner.observe(Instant::now());
    }

    /// All calls, without a transport and without what happens in the background: no promise is made of it.
    #[doc(hidden)]
    pub fn routes(&self) -> Routes {
        let (inner, limits) = (&self.inner, &self.inner.config.limits);
        let (reflection, reflection_alpha) = reflection::services(inner.schemas.clone());
        let publisher = PublisherServer::new(Publishing(inner.clone())).max_decoding_message_size(limits.message_bytes);
        let fleet = FleetServer::new(FleetService(inner.clone()))
            .max_decoding_message_size(limits.message_bytes)
            .max_encoding_message_size(usize::MAX);
        let leases = LeasesServer::new(Leasing(inner.clone())).max_decoding_message_size(limits.message_bytes);
        Routes::new(BusService::new(inner.clone()))
            .add_service(publisher)
            .add_service(fleet)
            .add_service(leases)
            .add_service(self.health.clone())
            .add_service(reflection)
            .add_service(reflection_alpha)
    }

    /// Serves these connections until `shutdown`, then sends everybody away and waits for them to go, but not longer
    /// than the configuration says.
    ///
    /// # Errors
    /// If the transport fails as a whole; a failing connection ends alone.
    pub async fn serve<I, IO, E>(self, incoming: I, shutdown: impl Future<Output = ()> + Send) -> Result<(), ServeError>
    where
        I: Stream<Item = Result<IO, E>> + Send,
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
        IO::ConnectInfo: Clone + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let inner = self.inner.clone();
        for service in SERVICES {
            inner.health.set_service_status(service, ServingStatus::Serving).await;
        }
        inner.readiness.refresh(&inner).await;
        let (config, limits) = (&inner.config, &inner.config.limits);
        let (counted, incoming_requests) = (inner.clone(), inner.incoming.clone());
        let server = Server::builder()
            .layer(MapResponseLayer::new(move |response| {
                counted.outgoing.hold(counted_error(&counted.metrics, response))
            }))
            .layer(MapRequestLayer::new(move |request| incoming_requests.watch(request)))
            .http2_keepalive_interval(Some(config.keepalive))
            .http2_keepalive_timeout(Some(config.keepalive))
            .http2_max_header_list_size(MAX_HEADERS)
            .http2_max_pending_accept_reset_streams(Some(MAX_RESET_STREAMS))
            .max_concurrent_streams(limits.streams)
            .add_routes(self.routes());

        let timeout = config.handshake_timeout;
        let connections = Connections::new(limits.connections, inner.metrics.clone());
        let incoming = incoming.filter_map(move |io| match io {
            Ok(io) => connections.take().map(|counted| Ok(Handshake::new(io, timeout, counted))),
            Err(error) => Some(Err(error)),
        });
        let (stopping, mut stopped) = tokio::sync::watch::channel(false);
        let draining = async {
            shutdown.await;
            tracing::info!("draining");
            for service in SERVICES {
                inner.health.set_service_status(service, ServingStatus::NotServing).await;
            }
            inner.sessions.drain(config.drain, "the bus is shutting down");
            inner.readiness.mark();
            inner.readiness.refresh(&inner).await;
            inner.fleet.activity.tell();
            stopping.send_replace(true);
        };
        let deadline = async {
            // An error means that the sender is gone, and serving has ended by itself.
            if stopped.wait_for(|stopping| *stopping).await.is_ok() {
                tokio::time::sleep(config.drain).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            served = Box::pin(server.serve_with_incoming_shutdown(incoming, draining)) => served?,
            () = inner.fleet.keep() => {}
            () = inner.readiness.keep(&inner) => {}
            () = inner.keep_counting() => {}
            () = inner.keep_sampling() => {}
            () = deadline => tracing::info!("drain deadline reached, closing what is left"),
        }
        Ok(())
    }
}

/// Counts calls that failed. The transport says `OUT_OF_RANGE` of a message that is larger than we take; it is a limit like
/// any other.
fn counted_error(metrics: &Metrics, response: http::Response<Body>) -> http::Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::OutOfRange => {
            metrics.refuse("message_bytes");
            metrics.error(Code::ResourceExhausted);
            fault::full("message_bytes", status.message().to_owned()).into_http()
        }
        Some(status) => {
            metrics.error(status.code());
            response
        }
        None => response,
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("store", &self.inner.store).finish_non_exhaustive()
    }
}
