//! The simulated network, as a bus and its clients use it.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use nimbus_client::{Connecting, Connector, Io};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{mpsc, watch},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use turmoil::net::{TcpListener, TcpStream};

/// Where a bus listens.
pub(crate) const PORT: u16 = 7400;

/// Connections that nobody has taken yet; whoever opens one more waits.
const BACKLOG: usize = 64;

/// The way of one host to others. All its connections break when it is reset.
#[derive(Clone)]
pub(crate) struct Line {
    resets: watch::Sender<u64>,
}

/// A connection that breaks with its line.
struct Breakable {
    stream: TcpStream,
    broken: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_broken: bool,
}

/// A connection as a server takes it.
pub(crate) struct Accepted(TcpStream);

// === impl Line ===

impl Line {
    pub(crate) fn new() -> Self {
        Self { resets: watch::Sender::new(0) }
    }

    /// Breaks every connection that is open.
    pub(crate) fn reset(&self) {
        self.resets.send_modify(|resets| *resets += 1);
    }
}

impl Connector for Line {
    fn connect(&self, host: &str, port: u16) -> Connecting {
        let (host, mut resets) = (host.to_owned(), self.resets.subscribe());
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            let broken = Box::pin(async move { drop(resets.changed().await) });
            Ok(Box::new(Breakable { stream, broken, is_broken: false }) as Box<dyn Io>)
        })
    }
}

/// The connections that arrive at this host.
pub(crate) async fn listen() -> io::Result<ReceiverStream<io::Result<Accepted>>> {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    let (sender, incoming) = mpsc::channel(BACKLOG);
    tokio::spawn(async move {
        loop {
            let accepted = listener.accept().await.map(|(stream, _)| Accepted(stream));
            if sender.send(accepted).await.is_err() {
                return;
            }
        }
    });
    Ok(ReceiverStream::new(incoming))
}

// === impl Breakable ===

impl Breakable {
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.is_broken = self.is_broken || self.broken.as_mut().poll(cx).is_ready();
        if self.is_broken { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Breakable {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Breakable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

// === impl Accepted ===

impl Connected for Accepted {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Accepted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
