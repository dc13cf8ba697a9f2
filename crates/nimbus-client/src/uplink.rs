//! The way up: connects, subscribes, hands on frames, and comes back after whatever happens.
//!
//! A bus that goes away is not an error. What is lost is only the connection; [`Uplink::next`] waits as long as it
//! should and connects again, to the next endpoint of the list.

mod connect;
mod heard;
mod retry;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use nimbus_core::Backoff;
use nimbus_wire::v1::{self, bus_client::BusClient};
use rand::{RngExt as _, rngs::SmallRng};
use tokio::time::{Instant, Sleep};
use tonic::{Status, Streaming, metadata::MetadataValue};

use self::heard::Heard;
pub use self::{
    connect::{Channel, Connecting, Connector, Endpoint, Io, Tcp},
    retry::{Advice, advise},
};

/// The way up.
pub struct Uplink {
    endpoints: Vec<Endpoint>,
    connector: Arc<dyn Connector>,
    identity: Option<String>,
    backoff: Backoff,
    rng: SmallRng,
    /// Which endpoint is next.
    turn: usize,
    /// Attempts since the last one that led to something.
    attempts: u32,
    state: State,
}

enum State {
    Waiting(Pin<Box<Sleep>>),
    Connecting(Pin<Box<dyn Future<Output = Result<Live, Status>> + Send>>),
    Live(Box<Live>),
}

/// An open subscription.
struct Live {
    client: BusClient<Channel>,
    frames: Streaming<v1::Frame>,
    /// Without any sign of life for this long, it is dead.
    patience: Duration,
    /// Parts of frames are signs of life, too: on a narrow line, one frame may take longer than many bookmarks are apart.
    heard: Heard,
    /// What had arrived when patience last began.
    heard_before: u64,
    silence: Pin<Box<Sleep>>,
}

/// What comes down.
#[derive(Debug)]
pub enum Arrival {
    /// A frame of the subscription.
    Frame(v1::Frame),
    /// The subscription was accepted.
    Connected {
        /// By this endpoint.
        endpoint: String,
    },
    /// It ended, or never began. The next attempt comes after this long.
    Lost {
        /// The endpoint that was tried.
        endpoint: String,
        /// Why.
        status: Status,
        /// What to do about it.
        advice: Advice,
        /// How long until the next attempt.
        wait: Duration,
    },
}

/// A connection that takes longer is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Until the bus says how often it shows that it lives.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);

/// Missed signs of life that make a stream dead.
const MISSES: u32 = 3;

/// Fewer bytes are no sign of life of a subscription: answers to pings are heard for as long as the connection lives.
const PART: u64 = 1 << 10;

/// Frames are at most 1 MiB or one object; a bus takes objects of at most 4 MiB unless told otherwise.
pub const MAX_MESSAGE: usize = 64 << 20;

// === impl Uplink ===

impl Uplink {
    /// A way up to one of these endpoints, of which there is at least one. Agents have an identity, which is their name;
    /// an observer may do without.
    pub fn new(
        endpoints: Vec<Endpoint>,
        connector: Arc<dyn Connector>,
        identity: Option<String>,
        backoff: Backoff,
        mut rng: SmallRng,
    ) -> Self {
        // A fleet that is given the same list does not all go to its first endpoint.
        let turn = rng.random_range(0..endpoints.len().max(1));
        let state = State::Waiting(Box::pin(tokio::time::sleep(Duration::ZERO)));
        Self { endpoints, connector, identity, backoff, rng, turn, attempts: 0, state }
    }

    /// What comes next. `request` says what to subscribe to, when it is time to.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped: it goes on where it was.
    pub async fn next(&mut self, request: impl FnOnce() -> v1::SubscribeRequest) -> Arrival {
        if let State::Waiting(wait) = &mut self.state {
            wait.as_mut().await;
            self.state = State::Connecting(self.connect(request()));
        }
        if let State::Connecting(attempt) = &mut self.state {
            match attempt.as_mut().await {
                Ok(live) => {
                    self.state = State::Live(Box::new(live));
                    return Arrival::Connected { endpoint: self.endpoint() };
                }
                Err(status) => return self.lost(status),
            }
        }
        let State::Live(live) = &mut self.state else { unreachable!("it was connected above") };
        let end = loop {
            tokio::select! {
                // Whoever was too busy to look finds both a frame and the end of its patience.
                biased;
                frame = live.frames.message() => match frame {
                    Ok(Some(frame)) => {
                        live.be_patient();
                        return Arrival::Frame(frame);
                    }
                    Ok(None) => break Status::unavailable("the bus closed the stream"),
                    Err(status) => break status,
                },
                () = live.silence.as_mut() => {
                    if live.heard.bytes() - live.heard_before < PART {
                        let waited = live.patience.as_secs_f64();
                        break Status::unavailable(format!("no sign of life for {waited:.1} s"));
                    }
                    live.be_patient();
                }
            }
        };
        self.lost(end)
    }

    /// How often the bus shows that it lives.
    pub fn expect_every(&mut self, interval: Duration) {
        if let State::Live(live) = &mut self.state
            && !interval.is_zero()
        {
            live.patience = interval * MISSES;
            live.be_patient();
        }
    }

    /// The subscription has led to something: the next failure is the first one.
    pub fn succeeded(&mut self) {
        self.attempts = 0;
    }

    /// Ends the subscription, if there is one, and begins another after `wait`.
    pub fn restart(&mut self, wait: Duration) {
        self.state = State::Waiting(Box::pin(tokio::time::sleep(wait)));
    }

    /// A client on the connection of the subscription.
    pub fn client(&self) -> Option<BusClient<Channel>> {
        match &self.state {
            State::Live(live) => Some(live.client.clone()),
            _ => None,
        }
    }

    fn endpoint(&self) -> String {
        self.endpoints[self.turn % self.endpoints.len()].to_string()
    }

    fn connect(&mut self, request: v1::SubscribeRequest) -> Pin<Box<dyn Future<Output = Result<Live, Status>> + Send>> {
        let endpoint = self.endpoints[self.turn % self.endpoints.len()].clone();
        let connector = self.connector.clone();
        let identity = self.identity.as_deref().map(MetadataValue::try_from).transpose();
        Box::pin(async move {
            let attempt = async {
                let channel = Channel::open(&*connector, &endpoint).await?;
                let heard = channel.heard().clone();
                let mut client = BusClient::with_origin(channel, endpoint.uri().clone())
                    .max_decoding_message_size(MAX_MESSAGE)
                    .max_encoding_message_size(MAX_MESSAGE);
                let mut request = tonic::Request::new(request);
                let identity = identity.map_err(|_| Status::invalid_argument("the identity cannot be sent"))?;
                if let Some(identity) = identity {
                    request.metadata_mut().insert("nimbus-identity", identity);
                }
                let frames = client.subscribe(request).await?.into_inner();
                let (patience, silence) = (FIRST_PATIENCE, Box::pin(tokio::time::sleep(FIRST_PATIENCE)));
                Ok(Live { client, frames, patience, heard, heard_before: 0, silence })
            };
            let late = |_| Status::unavailable(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()));
            tokio::time::timeout(CONNECT_TIMEOUT, attempt).await.map_err(late)?
        })
    }

    fn lost(&mut self, status: Status) -> Arrival {
        let endpoint = self.endpoint();
        let advice = advise(&status);
        let wait = match advice {
            Advice::After(wait) => wait,
            Advice::Backoff => self.backoff.delay(self.attempts, self.rng.random()),
            // Nothing will change soon: as rarely as ever, but not all at once.
            Advice::Superseded | Advice::Refused => self.backoff.max.mul_f64(0.5 + 0.5 * self.rng.random::<f64>()),
        };
        self.attempts = self.attempts.saturating_add(1);
        if !matches!(advice, Advice::After(_)) {
            // Where it was told when to come back, its turn is kept.
            self.turn = self.turn.wrapping_add(1);
        }
        self.restart(wait);
        Arrival::Lost { endpoint, status, advice, wait }
    }
}

// === impl Live ===

impl Live {
    /// Patience begins anew.
    fn be_patient(&mut self) {
        self.heard_before = self.heard.bytes();
        self.silence.as_mut().reset(Instant::now() + self.patience);
    }
}

impl fmt::Debug for Uplink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uplink")
            .field("endpoint", &self.endpoint())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
