//! The way to a bus: the flags that every client command has, and the calls.

use std::{future::Future, sync::Arc, time::Duration};

use clap::Args;
use nimbus_client::{Endpoint, Tcp, Uplink};
use nimbus_core::Backoff;
use nimbus_wire::v1::{bus_client::BusClient, fleet_client::FleetClient, publisher_client::PublisherClient};
use rand::{SeedableRng as _, rngs::SmallRng};
use tonic::{
    Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use crate::failure::Failure;

/// Which bus, who asks, and how long for. To be flattened into the arguments of every command that talks to a bus.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ClientArguments {
    #[command(flatten)]
    connection: ConnectionArguments,

    /// Seconds to wait for each answer.
    #[arg(long, env = "NIMBUS_TIMEOUT", value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT, value_parser = parse_seconds)]
    timeout: f64,
}

/// Which bus, and who asks. For commands whose `--timeout` is about something else than an answer.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Address of the bus: `host:port`, or `http://host:port`.
    #[arg(long, env = "NIMBUS_SERVER", value_name = "ADDRESS", default_value = "http://127.0.0.1:7400", value_parser = Endpoint::parse)]
    server: Endpoint,

    /// Who you are. Without it, nobody in particular.
    #[arg(long, env = "NIMBUS_IDENTITY", value_name = "NAME", value_parser = parse_identity)]
    identity: Option<String>,
}

/// In whose name objects are written. To be flattened into the arguments of commands that write.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Ownership")]
pub(crate) struct PublisherArguments {
    /// In whose name to write. An object belongs to who publishes it first, and is refused to all others [default: the
    /// --identity, or else `cli`].
    #[arg(long, env = "NIMBUS_PUBLISHER", value_name = "NAME")]
    publisher: Option<String>,

    /// Write objects of other publishers, too. A controller that owns them may well write them again.
    #[arg(long)]
    pub(crate) take_over: bool,
}

/// What requests go through. It connects with the first one.
pub(crate) type Link = InterceptedService<Channel, Identify>;

/// Says who is calling, in every request.
#[derive(Debug, Clone)]
pub(crate) struct Identify(Option<MetadataValue<Ascii>>);

/// A bus. Nothing is sent before the first call.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    link: Link,
    endpoint: Endpoint,
    address: String,
    timeout: f64,
    identity: Option<String>,
}

/// The metadata in which a caller says who it is.
const IDENTITY: &str = "nimbus-identity";

/// Where a bus listens if nobody says otherwise.
const DEFAULT_PORT: u16 = 7400;

/// In whose name people write, if they do not say.
const DEFAULT_PUBLISHER: &str = "cli";

/// Seconds to wait for an answer, if nobody says otherwise.
const DEFAULT_TIMEOUT: f64 = 10.0;

/// A little less than the whole: that nobody listens there says more than that nobody has answered.
const CONNECT_SHARE: f64 = 0.9;

/// Somebody looks at it: a bus that is back should be seen to be back.
const RECONNECT: Backoff = Backoff { base: Duration::from_millis(200), max: Duration::from_secs(5) };

/// The bus decides how large its pages are; this only stops somebody who is not a bus.
const MAX_ANSWER_BYTES: usize = 256 << 20;

// === impl ClientArguments ===

impl ClientArguments {
    /// The bus that was named. Must be called within a runtime.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.connection.client_within(self.timeout)
    }
}

// === impl ConnectionArguments ===

impl ConnectionArguments {
    /// The bus that was named, each of whose answers is waited for as long as by default. Must be called within a runtime.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_within(DEFAULT_TIMEOUT)
    }

    fn client_within(&self, timeout: f64) -> Result<Client, Failure> {
        let uri = self.server.uri();
        let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(DEFAULT_PORT));
        let address = format!("{host}:{port}");
        let endpoint = Channel::from_shared(format!("http://{address}"))
            .map_err(|error| Failure::invalid(format!("{address} is not an address: {error}")))?
            .connect_timeout(Duration::from_secs_f64(timeout * CONNECT_SHARE))
            .tcp_nodelay(true);
        let identity = match self.identity.as_deref().map(MetadataValue::try_from) {
            None => None,
            Some(Ok(name)) => Some(name),
            Some(Err(error)) => return Err(Failure::invalid(format!("--identity: {error}"))),
        };
        let link = InterceptedService::new(endpoint.connect_lazy(), Identify(identity));
        Ok(Client { link, endpoint: self.server.clone(), address, timeout, identity: self.identity.clone() })
    }
}

// === impl PublisherArguments ===

impl PublisherArguments {
    /// In whose name to write.
    pub(crate) fn name(&self, client: &Client) -> String {
        let name = self.publisher.as_deref().or(client.identity.as_deref());
        name.unwrap_or(DEFAULT_PUBLISHER).to_owned()
    }
}

// === impl Client ===

impl Client {
    /// Where the bus is, as `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Objects and kinds.
    pub(crate) fn bus(&self) -> BusClient<Link> {
        BusClient::new(self.link.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Writes.
    pub(crate) fn publisher(&self) -> PublisherClient<Link> {
        PublisherClient::new(self.link.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Agents.
    pub(crate) fn fleet(&self) -> FleetClient<Link> {
        FleetClient::new(self.link.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Descriptors.
    pub(crate) fn reflection(&self) -> ServerReflectionClient<Link> {
        ServerReflectionClient::new(self.link.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// A subscription that comes back by itself.
    pub(crate) fn uplink(&self) -> Uplink {
        let rng = SmallRng::seed_from_u64(rand::random());
        Uplink::new(vec![self.endpoint.clone()], Arc::new(Tcp), self.identity.clone(), RECONNECT, rng)
    }

    /// Waits for an answer, or for the beginning of a stream of them, for as long as the user wants to wait.
    pub(crate) async fn call<T>(
        &self,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(Duration::from_secs_f64(self.timeout), answer).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.failure(status)),
            Err(_) => Err(Failure::timed_out(&self.address, self.timeout)),
        }
    }

    /// Why the bus did not do it; for streams, which go on after [`Client::call`].
    pub(crate) fn failure(&self, status: Status) -> Failure {
        Failure::from_status(status, &self.address)
    }
}

// === impl Identify ===

impl Interceptor for Identify {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(name) = &self.0 {
            request.metadata_mut().insert(IDENTITY, name.clone());
        }
        Ok(request)
    }
}

/// Reads a time that a user is ready to wait.
pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds between 0.001 and 86400".to_owned()),
    }
}

fn parse_identity(text: &str) -> Result<String, String> {
    nimbus_core::check_name("identity", text)
        .map(|()| text.to_owned())
        .map_err(|error| error.to_string())
}
