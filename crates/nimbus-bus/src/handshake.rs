//! Connections must begin to speak in time.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Duration, Sleep},
};
use tonic::transport::server::Connected;

use crate::connections::Connection;

/// A connection that fails if its peer takes too long to say hello after it was accepted.
///
/// HTTP/2 pings find peers that went away, but only once the connection has begun; before that, nothing else does.
pub(crate) struct Handshake<IO> {
    io: IO,
    /// What is still missing of the greeting, and until when it must have come.
    missing: usize,
    deadline: Option<Pin<Box<Sleep>>>,
    connection: Connection,
}

/// What every HTTP/2 connection begins with: `PRI * HTTP/2.0` and so on. With it, pings begin.
const PREFACE_BYTES: usize = 24;

// === impl Handshake ===

impl<IO> Handshake<IO> {
    pub(crate) fn new(io: IO, timeout: Duration, connection: Connection) -> Self {
        let deadline = Some(Box::pin(tokio::time::sleep(timeout)));
        Self { io, missing: PREFACE_BYTES, deadline, connection }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Handshake<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let poll = Pin::new(&mut this.io).poll_read(cx, buf);
        let Some(deadline) = &mut this.deadline else { return poll };
        if poll.is_ready() {
            this.missing = this.missing.saturating_sub(buf.filled().len() - before);
            if this.missing == 0 {
                this.deadline = None;
            }
            return poll;
        }
        ready!(deadline.as_mut().poll(cx));
        this.connection.metrics.silent.inc();
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not say hello after it connected")))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Handshake<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

impl<IO: Connected> Connected for Handshake<IO> {
    type ConnectInfo = IO::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.io.connect_info()
    }
}
