//! Where the bus listens now, if it does.

use std::{io, net::SocketAddr};

use nimbus_client::{Channel, Connecting, Connector, Endpoint, Io};
use tokio::{net::TcpStream, sync::watch};
use tonic::Status;

/// Where the bus listens now. Whoever connects while it does not waits for it.
///
/// Every bus has another port: to a port that nobody listens on, loopback may connect a socket with itself.
#[derive(Debug, Clone)]
pub(crate) struct Whereabouts(watch::Sender<Option<SocketAddr>>);

/// What the bus is called; where it is, the connector knows.
const ENDPOINT: &str = "http://bus";

/// The endpoint that stands for the bus, wherever it is.
pub(crate) fn endpoint() -> Endpoint {
    Endpoint::parse(ENDPOINT).expect("it is an address")
}

// === impl Whereabouts ===

impl Whereabouts {
    pub(crate) fn unknown() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn set(&self, address: Option<SocketAddr>) {
        self.0.send_replace(address);
    }

    /// A connection of its own.
    pub(crate) async fn open(&self) -> Result<Channel, Status> {
        Channel::open(self, &endpoint()).await
    }
}

impl Connector for Whereabouts {
    fn connect(&self, _: &str, _: u16) -> Connecting {
        let mut known = self.0.subscribe();
        Box::pin(async move {
            let address = *known.wait_for(Option::is_some).await.map_err(io::Error::other)?;
            let stream = TcpStream::connect(address.expect("it was waited for")).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}
