//! Connections are counted, and so many are enough.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use nimbus_http2::Ended;

use crate::metrics::Metrics;

/// How many connections there are, and may be.
pub(crate) struct Connections {
    open: Arc<AtomicUsize>,
    limit: usize,
    metrics: Metrics,
}

/// A connection, for as long as it is there.
pub(crate) struct Connection {
    open: Arc<AtomicUsize>,
    metrics: Metrics,
}

// === impl Connections ===

impl Connections {
    pub(crate) fn new(limit: usize, metrics: Metrics) -> Self {
        Self { open: Arc::default(), limit, metrics }
    }

    /// One more; `None` if there are enough. Who is turned away learns it from the end of the connection: nothing was said on
    /// it yet, so there is nothing to answer.
    pub(crate) fn take(&self) -> Option<Connection> {
        if self.open.load(Ordering::Relaxed) >= self.limit {
            self.metrics.refuse("connections");
            return None;
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        self.metrics.accepted.inc();
        self.metrics.connections.inc();
        Some(Connection { open: self.open.clone(), metrics: self.metrics.clone() })
    }
}

// === impl Connection ===

impl Connection {
    /// Takes note of how it has ended.
    pub(crate) fn ended(self, how: &Ended) {
        match how {
            Ended::Silent => drop(self.metrics.silent.inc()),
            Ended::Failed(why) => tracing::debug!(%why, "a connection was ended"),
            Ended::Gone => tracing::debug!("a client does not answer any more"),
            Ended::Lost(error) => tracing::debug!(%error, "a connection was lost"),
            _ => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.metrics.connections.dec();
    }
}
