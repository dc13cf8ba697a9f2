//! A cheap connection to a bus: one socket, one task, the generated clients on top, and a count of what came in.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use anyhow::ensure;
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nimbus_wire::v1::{bus_client::BusClient, fleet_client::FleetClient, publisher_client::PublisherClient};
use rustix::process::{Resource, getrlimit};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tonic::{Request, Status, body::Body};
use tonic_prost::ProstCodec;

/// One connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    link: Link,
    origin: http::Uri,
    received: Arc<AtomicU64>,
}

/// What the generated clients send requests through.
#[derive(Debug, Clone)]
pub(crate) struct Link(http2::SendRequest<Body>);

/// Counts what is read from a socket.
struct Counted {
    io: TcpStream,
    received: Arc<AtomicU64>,
}

/// The windows that HTTP/2 begins with: what a client has that sets nothing.
const DEFAULT_WINDOW: u32 = 65_535;

/// Room for many pages at once.
const WIDE_WINDOW: u32 = 1 << 24;

/// Files that this program and the bus have open beside connections.
const OTHER_FILES: u64 = 100;

// === impl Connection ===

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Self::open_with(address, DEFAULT_WINDOW).await
    }

    /// The same for somebody who never lets the server wait.
    pub(crate) async fn open_wide(address: SocketAddr) -> anyhow::Result<Self> {
        Self::open_with(address, WIDE_WINDOW).await
    }

    async fn open_with(address: SocketAddr, window: u32) -> anyhow::Result<Self> {
        let io = TcpStream::connect(address).await?;
        io.set_nodelay(true)?;
        let received = Arc::new(AtomicU64::new(0));
        let io = Counted { io, received: received.clone() };
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .initial_connection_window_size(window)
            .handshake(TokioIo::new(io))
            .await?;
        // It ends with the bus or with the last use of this connection; who uses it sees the error.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self { link: Link(sender), origin: format!("http://{address}").parse()?, received })
    }

    /// One call of a service for which there is no generated client.
    pub(crate) async fn unary<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = tonic::client::Grpc::with_origin(self.link.clone(), self.origin.clone())
            .max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = http::uri::PathAndQuery::from_static(path);
        Ok(grpc.unary(Request::new(request), path, ProstCodec::<Q, A>::default()).await?.into_inner())
    }

    /// Bytes read from the socket, with everything that HTTP/2 adds.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn bus(&self) -> BusClient<Link> {
        BusClient::with_origin(self.link.clone(), self.origin.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn publisher(&self) -> PublisherClient<Link> {
        PublisherClient::with_origin(self.link.clone(), self.origin.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(crate) fn fleet(&self) -> FleetClient<Link> {
        FleetClient::with_origin(self.link.clone(), self.origin.clone()).max_decoding_message_size(usize::MAX)
    }
}

// === impl Link ===

impl tower::Service<http::Request<Body>> for Link {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

// === impl Counted ===

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.io).poll_read(cx, buf);
        self.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        poll
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// Whether that is enough for as many connections.
pub(crate) fn check_connections(wanted: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ensure!(
        wanted + OTHER_FILES <= limit,
        "{wanted} subscribers need {} open files, but the limit is {limit} (hint: ulimit -n)",
        wanted + OTHER_FILES
    );
    Ok(())
}
