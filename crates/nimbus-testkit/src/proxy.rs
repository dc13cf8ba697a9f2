//! A proxy between real processes, on which everything goes wrong that goes wrong on a network.

mod carry;
mod line;
mod pace;
#[cfg(test)]
mod tests;

use std::{fmt, io, net::SocketAddr, sync::Arc};

use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

use self::carry::{State, carry};
pub use self::line::{Cut, Line, Toward};

/// A proxy that carries TCP connections over a [`Line`], which can be changed while it runs. Clones are the same one; it ends
/// with the last of them, and with it all of its connections.
///
/// ```
/// # use std::time::Duration;
/// # use nimbus_testkit::{Cut, Line, Proxy, Toward};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// # let bus = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let line = Line { delay: Duration::from_millis(20), jitter: Duration::from_millis(10), ..Line::default() };
/// let proxy = Proxy::start(listener, &bus.to_string(), line, 7)?;
/// // Agents connect to proxy.address(), and then:
/// proxy.change(|line| line.loses = Some(Toward::Both)); // connections are half open, and nobody is told
/// proxy.change(|line| line.loses = None); // new ones get through
/// proxy.cut(Cut::Reset); // all that are open now end
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

/// What a proxy has carried so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Traffic {
    /// Connections that are open.
    pub open: usize,
    /// Connections that were taken so far.
    pub taken: u64,
    /// Of those, connections that broke: by themselves, or because one side broke them.
    pub cut: u64,
    /// Bytes that arrived at the server.
    pub up: u64,
    /// Bytes that arrived at clients.
    pub down: u64,
}

struct Inner {
    address: SocketAddr,
    state: watch::Sender<State>,
    traffic: Arc<watch::Sender<Traffic>>,
    _accepting: AbortOnDropHandle<()>,
}

/// What all connections of a proxy share.
#[derive(Clone)]
struct Shared {
    to: Arc<str>,
    state: watch::Receiver<State>,
    traffic: Arc<watch::Sender<Traffic>>,
}

// === impl Proxy ===

impl Proxy {
    /// Carries every connection that arrives at `listener` to that address. Chance follows from `seed` and the number of
    /// the connection.
    ///
    /// # Errors
    /// If the listener cannot tell its address.
    pub fn start(listener: TcpListener, to: &str, line: Line, seed: u64) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let state = watch::Sender::new(State { line, cuts: 0, how: Cut::Reset });
        let traffic = Arc::new(watch::Sender::new(Traffic::default()));
        let shared = Shared { to: to.into(), state: state.subscribe(), traffic: traffic.clone() };
        let accepting = AbortOnDropHandle::new(tokio::spawn(accept(listener, shared, seed)));
        Ok(Self(Arc::new(Inner { address, state, traffic, _accepting: accepting })))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// How the line is.
    pub fn line(&self) -> Line {
        self.0.state.borrow().line.clone()
    }

    /// Changes the line, for connections that are open, too.
    pub fn change(&self, change: impl FnOnce(&mut Line)) {
        self.0.state.send_modify(|state| change(&mut state.line));
    }

    /// Breaks every connection that is open.
    pub fn cut(&self, how: Cut) {
        self.0.state.send_modify(|state| (state.cuts, state.how) = (state.cuts + 1, how));
    }

    /// What it has carried so far.
    pub fn traffic(&self) -> Traffic {
        *self.0.traffic.borrow()
    }

    /// Waits until it has carried as much as is `wanted`.
    pub async fn wait_until(&self, wanted: impl FnMut(&Traffic) -> bool) -> Traffic {
        *self.0.traffic.subscribe().wait_for(wanted).await.expect("the sender is in self")
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &self.0.address)
            .field("line", &self.line())
            .field("traffic", &self.traffic())
            .finish()
    }
}

/// Takes connections, for ever.
async fn accept(listener: TcpListener, shared: Shared, seed: u64) {
    let mut connections = JoinSet::new();
    for number in 0_u64.. {
        let accepted = loop {
            tokio::select! {
                accepted = listener.accept() => break accepted,
                Some(_) = connections.join_next() => {}
            }
        };
        match accepted {
            Ok((near, _)) => {
                shared.traffic.send_modify(|traffic| traffic.taken += 1);
                let rng = SmallRng::seed_from_u64(seed.wrapping_add(number));
                connections.spawn(shared.clone().connection(near, rng));
            }
            // Such as for want of file descriptors: some of the connections have to end first.
            Err(_) => drop(connections.join_next().await),
        }
    }
}

// === impl Shared ===

impl Shared {
    async fn connection(mut self, mut near: TcpStream, rng: SmallRng) {
        let is_refused = self.state.borrow_and_update().line.refuses;
        let reached = if is_refused { None } else { TcpStream::connect(&*self.to).await.ok() };
        let Some(mut far) = reached else {
            return reset(&near);
        };
        // What waits for company would be delayed by more than the line says.
        let _ = near.set_nodelay(true).and_then(|()| far.set_nodelay(true));
        let open = Open::new(&self.traffic);
        let end = carry(&mut near, &mut far, self.state, &self.traffic, rng).await;
        if let Some(how) = end {
            self.traffic.send_modify(|traffic| traffic.cut += 1);
            if how == Cut::Reset {
                reset(&near);
                reset(&far);
            }
        }
        drop((near, far));
        drop(open);
    }
}

/// The connection ends with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    // If that cannot be had, it ends otherwise.
    let _ = stream.set_zero_linger();
}

/// A connection that counts as open.
struct Open<'a>(&'a watch::Sender<Traffic>);

// === impl Open ===

impl<'a> Open<'a> {
    fn new(traffic: &'a watch::Sender<Traffic>) -> Self {
        traffic.send_modify(|traffic| traffic.open += 1);
        Self(traffic)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|traffic| traffic.open -= 1);
    }
}
