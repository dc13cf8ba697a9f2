//! The bus as a whole: its services on connections that are given to it.

use std::{future::Future, path::Path, pin::pin, sync::Arc};

use nimbus_http2::{Connection, Drain};

#[cfg(feature = "sim")]
use nimbus_store::DrivenDisk;
use nimbus_store::{Collection, OpenError};
use nimbus_wire::v1::{leases_server::LeasesServer, publisher_server::PublisherServer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::Instant,
};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{service::Routes, transport::server::Connected};
use tonic_health::{
    ServingStatus,
    pb::health_server::HealthServer,
    server::{HealthReporter, HealthService},
};

use crate::{
    calls::Calls, config::Config, connections::Connections, fleet::WatchedFleet, inner::Inner, leasing::Leasing,
    metrics::Metrics, publishing::Publishing, readiness::Unready, reflection, schemas::Schemas, subscribe::BusService,
};

/// A bus. Cheap to clone; all clones are the same bus.
#[derive(Clone)]
pub struct Bus {
    pub(crate) inner: Arc<Inner>,
    health: HealthServer<HealthService>,
}

/// Why a bus stopped serving. There is no reason at present: what happens to one connection ends that one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {}

/// Ends all connections, however serving ends.
struct Closing(Drain);

/// Room for the metadata of a call. Nobody needs more, and a header block is held in memory.
const MAX_HEADERS: usize = 16 << 10;

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
        let fleet = WatchedFleet::new(inner.clone());
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
        let transport = Arc::new(nimbus_http2::Config {
            streams: limits.streams,
            header_bytes: MAX_HEADERS,
            handshake: config.handshake_timeout,
            keepalive: config.keepalive,
            ..nimbus_http2::Config::default()
        });
        let calls = Calls::new(inner.clone(), self.routes());
        let connections = Connections::new(limits.connections, inner.metrics.clone());
        let drain = Drain::default();
        let _closing = Closing(drain.clone());
        let open = |io| {
            let Some(counted) = connections.take() else { return };
            let calls = calls.clone();
            let connection = Connection::new(io, transport.clone(), &drain, move |request| calls.answer(request));
            // It ends with its peer, or with `drain`.
            tokio::spawn(async move { counted.ended(&connection.await) });
        };
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
        let serving = async {
            accept(incoming, draining, open).await;
            drain.drain();
            drain.ended().await;
        };
        tokio::select! {
            () = serving => {}
            () = inner.fleet.keep() => {}
            () = inner.readiness.keep(&inner) => {}
            () = inner.keep_counting() => {}
            () = inner.keep_sampling() => {}
            () = deadline => tracing::info!("drain deadline reached, closing what is left"),
        }
        Ok(())
    }
}

/// Opens connections until there are no more, or the bus stops: then nobody listens any more.
async fn accept<IO, E>(incoming: impl Stream<Item = Result<IO, E>>, stop: impl Future<Output = ()>, open: impl Fn(IO)) {
    let (mut incoming, mut stop) = (pin!(incoming), pin!(stop));
    loop {
        tokio::select! {
            () = &mut stop => return,
            io = incoming.next() => match io {
                Some(Ok(io)) => open(io),
                // Whoever accepts has said so, and knows when to try again.
                Some(Err(_)) => {}
                None => return,
            },
        }
    }
}

// === impl Closing ===

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bus").field("store", &self.inner.store).finish_non_exhaustive()
    }
}
