//! A bus in this process, where the tests can set its limits and read its metrics.

use std::net::SocketAddr;

use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::Epoch;
use nimbus_wire::v1::{bus_client::BusClient, publisher_client::PublisherClient};
use prometheus_client::registry::Registry;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Endpoint};

/// The history of every bus here.
pub(crate) const EPOCH: u64 = 7;

/// A bus in this process. It ends when it is dropped.
pub(crate) struct LocalBus {
    pub(crate) address: SocketAddr,
    registry: Registry,
    serving: JoinHandle<()>,
}

// === impl LocalBus ===

impl LocalBus {
    /// Starts a bus with a configuration that the test has changed.
    pub(crate) async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(Epoch(EPOCH), 1);
        change(&mut config);
        let mut registry = Registry::default();
        let bus = Bus::new(config, Metrics::new(&mut registry));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            bus.serve(TcpListenerStream::new(listener), std::future::pending()).await.unwrap();
        });
        Self { address, registry, serving }
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    /// Clients on a connection of their own.
    pub(crate) async fn clients(&self) -> (BusClient<Channel>, PublisherClient<Channel>) {
        let channel = self.connect().await;
        (BusClient::new(channel.clone()), PublisherClient::new(channel))
    }

    /// A metric by its name and labels, as Prometheus would see it; 0 as long as there is none.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.map_or(0, |value| value.parse().unwrap())
    }

    /// How often a limit was the reason to refuse something.
    pub(crate) fn refusals(&self, limit: &str) -> i64 {
        self.metric(&format!("nimbus_bus_refusals_total{{limit=\"{limit}\"}}"))
    }
}

impl Drop for LocalBus {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
