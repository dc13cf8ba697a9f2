//! The line of one agent to the bus: counts what comes down, and can be cut.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use nimbus_agent::{Connector, Io};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::watch,
};

use crate::demo::tap::{Tap, Traffic};

/// The line of one agent to the bus. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cut: watch::Sender<bool>,
    traffic: Mutex<Traffic>,
}

/// A connection on a line.
struct Wire {
    stream: TcpStream,
    tap: Tap,
    line: Line,
    /// Resolves when the line is cut.
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_cut: bool,
}

// === impl Line ===

impl Line {
    /// Breaks the connection, and refuses others until it is mended.
    pub(crate) fn cut(&self) {
        self.0.cut.send_replace(true);
    }

    /// Whoever connects from now on gets through.
    pub(crate) fn mend(&self) {
        self.0.cut.send_replace(false);
    }

    /// All that has come down so far.
    pub(crate) fn traffic(&self) -> Traffic {
        *self.0.traffic.lock()
    }
}

impl Connector for Line {
    fn connect(&self, host: &str, port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let (line, host, mut cut) = (self.clone(), host.to_owned(), self.0.cut.subscribe());
        Box::pin(async move {
            if *cut.borrow() {
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the line is cut"));
            }
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let cut = Box::pin(async move { drop(cut.wait_for(|cut| *cut).await) });
            Ok(Box::new(Wire { stream, tap: Tap::default(), line, cut, is_cut: false }) as Box<dyn Io>)
        })
    }
}

// === impl Wire ===

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_cut || self.cut.as_mut().poll(cx).is_ready() {
            // Whoever sees this drops the connection, and with it the socket.
            self.is_cut = true;
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let seen = self.tap.read(&buffer.filled()[before..]);
        *self.line.0.traffic.lock() += seen;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
