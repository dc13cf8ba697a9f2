//! Connections to a bus: one socket, one HTTP/2 connection, set up for what a bus sends.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tonic::{Status, body::Body};

use crate::uplink::heard::{Heard, Listening};

/// A bus' address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(http::Uri);

/// A connection as a connector gives it.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A connection that is being opened.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>>;

/// Opens connections. Tests and simulated networks have their own.
pub trait Connector: Send + Sync + 'static {
    /// Opens a connection to a host and port.
    fn connect(&self, host: &str, port: u16) -> Connecting;
}

/// Connects over TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp;

/// What generated clients send requests through.
#[derive(Debug, Clone)]
pub struct Channel {
    requests: http2::SendRequest<Body>,
    heard: Heard,
}

/// Where a bus listens if nobody says otherwise.
const DEFAULT_PORT: u16 = 7400;

/// A bus sends frames of up to 256 KiB. In pieces of 16 KiB, as HTTP/2 begins with, they cost it twice the time.
const MAX_FRAME: u32 = 1 << 20;

/// Room for a frame under way. What is under way to all agents leaves the caches of the machine that sends it: with a megabyte for
/// each, two hundred snapshots at once take it a third more CPU. A line with a tenth of a second there and back carries 2.5 MB/s.
const WINDOW: u32 = 256 << 10;

/// As often as the bus does. The end of a host, or of the path to it, is noticed within this time and `PING_TIMEOUT`.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

// === impl Endpoint ===

impl Endpoint {
    /// Reads an address, such as `http://bus:7400` or `bus:7400`.
    ///
    /// # Errors
    /// If it is not one; the text says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: http::Uri = with_scheme.parse().map_err(|_| expected(text))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(format!("{text:?}: TLS is not supported yet (hint: use http://)")),
            _ => return Err(expected(text)),
        }
        if uri.host().is_none_or(str::is_empty) || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(expected(text));
        }
        Ok(Self(uri))
    }

    /// The address as requests name it.
    pub fn uri(&self) -> &http::Uri {
        &self.0
    }

    fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(DEFAULT_PORT)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn expected(text: &str) -> String {
    format!("{text:?} is not an address of a bus, expected one such as http://127.0.0.1:{DEFAULT_PORT}")
}

// === impl Tcp ===

impl Connector for Tcp {
    fn connect(&self, host: &str, port: u16) -> Connecting {
        let host = host.to_owned();
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            // Reports are small, and must not wait for others.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

// === impl Channel ===

impl Channel {
    /// Opens a connection.
    ///
    /// # Errors
    /// If nobody listens there, or whoever does speaks no HTTP/2.
    pub async fn open(connector: &dyn Connector, endpoint: &Endpoint) -> Result<Self, Status> {
        let unreachable = |error: &dyn fmt::Display| {
            Status::unavailable(format!("cannot connect to {endpoint}: {error} (hint: is the bus listening there?)"))
        };
        let io = connector
            .connect(endpoint.host(), endpoint.port())
            .await
            .map_err(|error| unreachable(&error))?;
        let heard = Heard::default();
        let io = Listening::new(io, heard.clone());
        let (requests, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_frame_size(MAX_FRAME)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| unreachable(&error))?;
        // It ends with the last use of the connection; whoever uses it sees the error.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self { requests, heard })
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// What has arrived on it.
    pub(crate) fn heard(&self) -> &Heard {
        &self.heard
    }
}

impl tower::Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.requests.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.requests.send_request(request))
    }
}
