//! Everybody who takes part in a simulation.

pub(crate) mod agent;
pub(crate) mod bus;
pub(crate) mod controller;
pub(crate) mod publisher;
pub(crate) mod reader;
pub(crate) mod rival;
pub(crate) mod user;

use std::time::Duration;

use nimbus_client::{Channel, Endpoint};
use tokio::time::{sleep, timeout};

use crate::{net::Line, world::World};

/// The address of the bus.
pub(crate) const ADDRESS: &str = "http://bus:7400";

/// A call that takes longer is given up, and nobody knows how it ended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

/// The address of the bus that users write to.
pub(crate) const API_ADDRESS: &str = "http://api:7400";

/// Opens a connection to the bus.
pub(crate) async fn connect(line: &Line) -> Result<Channel, String> {
    connect_to(line, &endpoint()).await
}

pub(crate) async fn connect_to(line: &Line, endpoint: &Endpoint) -> Result<Channel, String> {
    let opened = timeout(PATIENCE, Channel::open(line, endpoint)).await;
    opened
        .map_err(|_| "no connection in time".to_owned())?
        .map_err(|status| status.message().to_owned())
}

pub(crate) fn endpoint() -> Endpoint {
    Endpoint::parse(ADDRESS).expect("an address")
}

/// Lets the clock of this host jump when it is told to.
pub(crate) async fn keep_jumping(world: World, host: String) {
    let mut done = world.lock().jumps.get(&host).copied().unwrap_or_default();
    loop {
        sleep(Duration::from_millis(50)).await;
        let asked = world.lock().jumps.get(&host).copied().unwrap_or_default();
        if asked > done {
            tokio::time::advance(asked - done).await;
            done = asked;
        }
    }
}
