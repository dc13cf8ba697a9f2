//! `nimbus serve`: a bus on a socket.

use std::{error::Error, fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::Epoch;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::{StreamExt as _, wrappers::TcpListenerStream};

use crate::{limits::LimitArguments, shutdown};

/// Run a bus.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to listen. Port 0 takes any free one; the first line of output says which.
    #[arg(long, env = "NIMBUS_LISTEN", default_value = "127.0.0.1:7400")]
    listen: SocketAddr,

    /// Where objects are kept: `redb:PATH` in a file, so that a restart goes on where it was; `memory` forgets them when
    /// it stops, and publishers refill it.
    #[arg(long, env = "NIMBUS_STORE", default_value = "redb:nimbus.redb", value_name = "redb:PATH|memory", value_parser = parse_store)]
    store: Store,

    /// Treat every kind as complete, whether a publisher has synced it or not.
    ///
    /// For trying things out. After a restart, agents remove what has not been published again yet.
    #[arg(long, env = "NIMBUS_ASSUME_COMPLETE")]
    assume_complete: bool,

    /// Seconds between bookmarks, which tell an idle subscriber that it has everything.
    #[arg(long, env = "NIMBUS_BOOKMARK_INTERVAL", default_value_t = 15.0, value_name = "SECONDS", value_parser = parse_seconds)]
    bookmark_interval: f64,

    /// Seconds over which subscribers are sent away when the bus stops.
    #[arg(long, env = "NIMBUS_DRAIN", default_value_t = 5.0, value_name = "SECONDS", value_parser = parse_seconds)]
    drain: f64,

    /// Seconds after which an agent without a session is lost.
    #[arg(long, env = "NIMBUS_LOST_AFTER", default_value_t = 30.0, value_name = "SECONDS", value_parser = parse_seconds)]
    lost_after: f64,

    /// Seconds after which an agent without a session is forgotten.
    #[arg(long, env = "NIMBUS_FORGET_AFTER", default_value_t = 86_400.0, value_name = "SECONDS", value_parser = parse_seconds)]
    forget_after: f64,

    #[command(flatten)]
    limits: LimitArguments,
}

/// Long enough to be cheap, short enough not to be noticed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
enum Store {
    Memory,
    Redb(PathBuf),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), String> {
    let Arguments { listen, store, assume_complete, limits, .. } = arguments;
    let (bookmark_interval, drain) = (arguments.bookmark_interval, arguments.drain);
    let (lost_after, forget_after) = (arguments.lost_after, arguments.forget_after);
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| format!("cannot listen on {listen}: {error} (hint: is another bus running there?)"))?;
    let address = listener.local_addr().map_err(|error| format!("cannot tell the address: {error}"))?;

    let config = Config {
        assume_complete,
        bookmark_interval: Duration::from_secs_f64(bookmark_interval),
        drain: Duration::from_secs_f64(drain),
        lost_after: Duration::from_secs_f64(lost_after),
        forget_after: Duration::from_secs_f64(forget_after),
        limits: limits.into_limits()?,
        ..Config::new(Epoch(rand::random()), rand::random())
    };
    let metrics = Metrics::new(&mut Registry::default());
    let bus = match &store {
        Store::Memory => Bus::new(config, metrics),
        Store::Redb(path) => Bus::open(path, config, metrics).map_err(|error| described(&error))?,
    };
    let state = bus.store().state();
    let (epoch, revision, objects) = (state.epoch(), state.head(), state.objects());
    drop(state);
    let incoming = TcpListenerStream::new(listener).then(prepare);
    // Before anybody is told where it listens: whoever knows may stop it.
    let stop = shutdown::signals().map_err(|error| format!("cannot wait for signals: {error}"))?;

    #[allow(clippy::print_stdout, reason = "scripts read the address from the first line")]
    {
        println!("listening on {address}");
    }
    tracing::info!(%address, %epoch, %revision, objects, %store, assume_complete, "bus started");
    bus.serve(incoming, stop).await.map_err(|error| error.to_string())?;
    tracing::info!("bus stopped");
    Ok(())
}

/// Small frames must not wait for others. If nothing can be accepted, such as for want of file descriptors, trying again
/// at once would only burn the processor.
async fn prepare(stream: std::io::Result<TcpStream>) -> std::io::Result<TcpStream> {
    match stream {
        Ok(stream) => stream.set_nodelay(true).map(|()| stream),
        Err(error) => {
            tracing::warn!(%error, "cannot accept connections");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            Err(error)
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redb(path) => write!(f, "redb:{}", path.display()),
        }
    }
}

fn parse_store(text: &str) -> Result<Store, String> {
    match text.split_once(':') {
        None if text == "memory" => Ok(Store::Memory),
        Some(("redb", path)) if !path.is_empty() => Ok(Store::Redb(path.into())),
        _ => Err("expected redb:PATH, such as redb:/var/lib/nimbus/store.redb, or memory".to_owned()),
    }
}

/// An error with all that caused it.
fn described(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds between 0.01 and 86400".to_owned()),
    }
}
