//! Health and metrics beside the bus, in plain HTTP/1.1.
//!
//! Whoever asks here must not be able to hurt the bus: a connection is for one request, which must be small and come soon,
//! and there are few of them.

mod pages;

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::timeout,
};

pub(crate) use self::pages::Pages;
use crate::serve::ACCEPT_PAUSE;

/// A few monitors and people. Beyond it, the oldest connection ends: whoever means well was answered long ago.
const MAX_CONNECTIONS: usize = 64;

/// From the first byte to the last. Monitors give up after ten seconds by default, too.
const DEADLINE: Duration = Duration::from_secs(10);

/// Browsers send one or two kilobytes; hyper takes no less than eight.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// Browsers send fifteen or so.
const MAX_HEADERS: usize = 64;

/// Answers whoever connects, until it is dropped.
pub(crate) async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                oldest_first.retain(|connection| !connection.is_finished());
                if oldest_first.len() >= MAX_CONNECTIONS
                    && let Some(oldest) = oldest_first.pop_front()
                {
                    oldest.abort();
                }
                oldest_first.push_back(connections.spawn(answer(stream, pages.clone())));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections for health and metrics");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers one request.
async fn answer(stream: TcpStream, pages: Arc<Pages>) {
    let answer = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let pages = pages.clone();
        async move { Ok::<_, Infallible>(pages.answer(request.method().clone(), request.uri().path().to_owned()).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(DEADLINE)
        .keep_alive(false)
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), answer);
    // What goes wrong here is the client's business.
    match timeout(DEADLINE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request for health or metrics failed"),
        Err(_) => tracing::debug!("a request for health or metrics took too long"),
    }
}
