//! A network of memory between the bus and everybody else.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ctkit::{Connector, Io};
use parking_lot::Mutex;
use tokio::{
    io::DuplexStream,
    sync::{mpsc, watch},
};
use tokio_stream::wrappers::ReceiverStream;

/// Where the bus can be found. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Net(Arc<Mutex<Option<Listener>>>);

/// Where connections arrive, for as long as somebody listens.
struct Listener {
    connections: mpsc::Sender<io::Result<DuplexStream>>,
    /// Closes with the listener, and with it every connection.
    open: watch::Sender<()>,
}

/// The way of one participant to the bus, which tests may cut. Clones are the same one.
#[derive(Clone)]
pub struct Link(Arc<Inner>);

struct Inner {
    net: Net,
    state: watch::Sender<State>,
    /// Connections that somebody holds open.
    live: Arc<AtomicUsize>,
}

/// A connection that is open.
struct Open(Arc<AtomicUsize>);

/// How a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    Cut,
    Frozen,
}

/// Connections that nobody has taken yet; whoever opens one more waits.
const BACKLOG: usize = 64;

/// Bytes on their way in one direction; whoever writes more waits for the reader.
const IN_FLIGHT: usize = 64 << 10;

// === impl Net ===

impl Net {
    /// Whoever connects from now on gets to this listener.
    pub(crate) fn listen(&self) -> ReceiverStream<io::Result<DuplexStream>> {
        let (connections, incoming) = mpsc::channel(BACKLOG);
        *self.0.lock() = Some(Listener { connections, open: watch::Sender::new(()) });
        ReceiverStream::new(incoming)
    }

    /// Nobody listens any more, and every connection breaks.
    pub(crate) fn close(&self) {
        drop(self.0.lock().take());
    }

    /// Whether somebody listens.
    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// A way to whoever listens.
    pub(crate) fn link(&self) -> Link {
        Link(Arc::new(Inner { net: self.clone(), state: watch::Sender::new(State::Up), live: Arc::default() }))
    }
}

// === impl Link ===

impl Link {
    /// Breaks every connection, and refuses new ones until it is healed.
    pub fn cut(&self) {
        self.0.state.send_replace(State::Cut);
    }

    /// Nothing arrives any more, and nobody is told: connections are half open, as after the loss of a machine. They stay
    /// so when it is healed; only new ones work.
    pub fn freeze(&self) {
        self.0.state.send_replace(State::Frozen);
    }

    /// Whoever connects from now on gets through.
    pub fn heal(&self) {
        self.0.state.send_replace(State::Up);
    }

    /// Whether connections get through.
    pub fn is_up(&self) -> bool {
        *self.0.state.borrow() == State::Up
    }

    /// Connections that are open now.
    pub(crate) fn live(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Whether somebody could be reached now.
    pub(crate) fn reaches(&self) -> bool {
        self.is_up() && self.0.net.is_open()
    }
}

impl Connector for Link {
    fn connect(&self, _host: &str, _port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let (net, mut state, live) = (self.0.net.clone(), self.0.state.subscribe(), self.0.live.clone());
        Box::pin(async move {
            let now = state.wait_for(|state| *state != State::Frozen).await;
            if now.map_or(State::Cut, |state| *state) == State::Cut {
                return Err(refused("the link is cut"));
            }
            let found = net.0.lock().as_ref().map(|bus| (bus.connections.clone(), bus.open.subscribe()));
            let (connections, open) = found.ok_or_else(|| refused("nobody listens"))?;
            let (near, near_end) = tokio::io::duplex(IN_FLIGHT);
            let (far, far_end) = tokio::io::duplex(IN_FLIGHT);
            // It ends with either end, with the link, or with the bus.
            let live = Open::new(live);
            tokio::spawn(async move {
                carry(near_end, far_end, state, open).await;
                drop(live);
            });
            connections.send(Ok(far)).await.map_err(|_| refused("nobody listens any more"))?;
            Ok(Box::new(near) as Box<dyn Io>)
        })
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&*self.0.state.borrow()).finish()
    }
}

// === impl Open ===

impl Open {
    fn new(live: Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self(live)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn carry(
    mut near: DuplexStream,
    mut far: DuplexStream,
    mut state: watch::Receiver<State>,
    mut open: watch::Receiver<()>,
) {
    tokio::select! {
        biased;
        _ = open.changed() => return,
        _ = state.wait_for(|state| *state != State::Up) => {}
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
    }
    // Half open, or about to end.
    tokio::select! {
        biased;
        _ = open.changed() => {}
        _ = state.wait_for(|state| *state == State::Cut) => {}
    }
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, why)
}
