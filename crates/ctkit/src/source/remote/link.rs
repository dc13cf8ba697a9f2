//! Connections to a daemon: one for all calls, and one for each stream.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use nimbus_client::{Channel, Connector, Endpoint, MAX_MESSAGE, Uplink};
use nimbus_core::Backoff;
use nimbus_wire::v1::{
    bus_client::BusClient, fleet_client::FleetClient, leases_client::LeasesClient, publisher_client::PublisherClient,
};
use rand::{SeedableRng as _, rngs::SmallRng};
use tokio::sync::{Mutex, RwLock, watch};
use tonic::{Request, Response, Status, metadata::MetadataValue};

/// How to reach a daemon, and the connection for calls.
pub(crate) struct Link {
    endpoints: Vec<Endpoint>,
    connector: Arc<dyn Connector>,
    identity: Option<String>,
    pub(crate) backoff: Backoff,
    pub(crate) deadline: Duration,
    seed: AtomicU64,
    /// The endpoint to try next.
    turn: AtomicUsize,
    /// The connection for calls. Held while it is being opened: others wait for the same one.
    line: Mutex<Option<Line>>,
    /// Counts the connections for calls: whoever waits to try again is told that the daemon is back.
    lines: watch::Sender<u64>,
    /// Calls that write share it; the beginning of a sync has it alone.
    pub(crate) gate: RwLock<()>,
}

/// A connection, and where it leads.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    channel: Channel,
    pub(crate) endpoint: Endpoint,
}

/// Says what is worth a line in the log: the first time that something is so.
#[derive(Debug, Default)]
pub(crate) struct News(Option<bool>);

/// Half of what a call may take, unless told otherwise: there is time for another endpoint.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Link ===

impl Link {
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        connector: Arc<dyn Connector>,
        identity: Option<String>,
        backoff: Backoff,
        deadline: Duration,
        seed: u64,
    ) -> Self {
        Self {
            endpoints,
            connector,
            identity,
            backoff,
            deadline,
            seed: AtomicU64::new(seed),
            turn: AtomicUsize::new(0),
            line: Mutex::new(None),
            lines: watch::Sender::new(0),
            gate: RwLock::new(()),
        }
    }

    /// A way up for one subscription.
    pub(crate) fn uplink(&self) -> Uplink {
        let (endpoints, connector) = (self.endpoints.clone(), self.connector.clone());
        Uplink::new(endpoints, connector, self.identity.clone(), self.backoff, self.rng())
    }

    /// Randomness of its own for each stream.
    pub(crate) fn rng(&self) -> SmallRng {
        SmallRng::seed_from_u64(self.seed.fetch_add(1, Ordering::Relaxed))
    }

    /// A request, with the identity of the caller.
    pub(crate) fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(identity) = &self.identity {
            let identity = MetadataValue::try_from(identity.as_str()).expect("it was checked when it was given");
            request.metadata_mut().insert("nimbus-identity", identity);
        }
        request
    }

    /// Makes a call. What is not answered in time is given up, and so is the connection for those who call next.
    pub(crate) async fn call<M, T, F>(
        &self,
        message: M,
        send: impl FnOnce(Line, Request<M>) -> F + Send,
    ) -> Result<T, Status>
    where
        M: Send,
        F: Future<Output = Result<Response<T>, Status>> + Send,
    {
        let mut request = self.request(message);
        request.set_timeout(self.deadline);
        let answer = async { send(self.line().await?, request).await };
        match tokio::time::timeout(self.deadline, answer).await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => {
                self.give_up_line();
                Err(Status::unavailable(format!("no answer within {:.1} s", self.deadline.as_secs_f64())))
            }
        }
    }

    /// The connection for calls leads nowhere: the next call opens another one.
    pub(crate) fn give_up_line(&self) {
        // Whoever opens another one right now has forgotten it already.
        if let Ok(mut line) = self.line.try_lock() {
            *line = None;
        }
    }

    /// The connection for calls; opens one if there is none.
    pub(crate) async fn line(&self) -> Result<Line, Status> {
        let mut line = self.line.lock().await;
        if let Some(line) = &*line
            && !line.channel.is_closed()
        {
            return Ok(line.clone());
        }
        let new = self.dial().await?;
        *line = Some(new.clone());
        self.lines.send_modify(|lines| *lines += 1);
        Ok(new)
    }

    /// Changes when somebody has got through to the daemon.
    pub(crate) fn lines(&self) -> watch::Receiver<u64> {
        self.lines.subscribe()
    }

    /// Opens a connection to the first endpoint that answers.
    pub(crate) async fn dial(&self) -> Result<Line, Status> {
        let mut refused = Status::unavailable("there is no endpoint");
        for _ in 0..self.endpoints.len() {
            // Whoever gives up meanwhile leaves the next endpoint to those who come next.
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let endpoint = &self.endpoints[turn % self.endpoints.len()];
            let attempt = Channel::open(&*self.connector, endpoint);
            match tokio::time::timeout(CONNECT_TIMEOUT, attempt).await {
                Ok(Ok(channel)) => {
                    self.turn.store(turn, Ordering::Relaxed);
                    return Ok(Line { channel, endpoint: endpoint.clone() });
                }
                Ok(Err(status)) => refused = status,
                Err(_) => {
                    let waited = CONNECT_TIMEOUT.as_secs();
                    refused = Status::unavailable(format!("{endpoint} did not answer within {waited} s"));
                }
            }
        }
        Err(refused)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("endpoints", &self.endpoints)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

// === impl Line ===

impl Line {
    pub(crate) fn bus(self) -> BusClient<Channel> {
        BusClient::with_origin(self.channel, self.endpoint.uri().clone()).max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn publisher(self) -> PublisherClient<Channel> {
        PublisherClient::with_origin(self.channel, self.endpoint.uri().clone()).max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn fleet(self) -> FleetClient<Channel> {
        FleetClient::with_origin(self.channel, self.endpoint.uri().clone()).max_decoding_message_size(MAX_MESSAGE)
    }

    pub(crate) fn leases(self) -> LeasesClient<Channel> {
        LeasesClient::with_origin(self.channel, self.endpoint.uri().clone()).max_decoding_message_size(MAX_MESSAGE)
    }
}

// === impl News ===

impl News {
    /// Whether this is another state than before.
    pub(crate) fn is(&mut self, up: bool) -> bool {
        self.0.replace(up) != Some(up)
    }
}
