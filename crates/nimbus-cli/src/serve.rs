//! `nimbus serve`: a bus on a socket.

use std::{
    env, error::Error, fmt, io::Write as _, net::SocketAddr, num::NonZeroUsize, path::PathBuf, sync::Arc,
    time::Duration,
};

use clap::{ArgAction, Args, builder::BoolishValueParser};
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::Epoch;
use prometheus_client::registry::Registry;
use tokio::net::TcpStream;
use tokio_stream::{StreamExt as _, wrappers::TcpListenerStream};

use crate::{
    admin::{self, Pages},
    configuration::Configuration,
    limits::LimitArguments,
    listening,
    logging::LogArguments,
    process, shutdown,
};

/// Run a bus.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file with options: their names without the dashes, in TOML. Flags and the environment go before it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the options that are in force, and where each comes from, as a file for --config, and do nothing else.
    #[arg(long)]
    print_config: bool,

    /// Where to listen. Port 0 takes any free one; the first line of output says which.
    #[arg(long, default_value = "127.0.0.1:7400", value_name = "ADDRESS", value_parser = parse_address)]
    listen: SocketAddr,

    /// Where health and metrics are told, in plain HTTP: /livez, /readyz, /metrics. Port 0 takes any free one, which the
    /// second line of output says; `none` switches it off.
    #[arg(long, default_value = "127.0.0.1:7401", value_name = "ADDRESS|none", value_parser = parse_admin)]
    admin: Admin,

    /// Where objects are kept: `redb:PATH` in a file, so that a restart goes on where it was; `memory` forgets them when
    /// it stops, and publishers refill it.
    #[arg(long, default_value = "redb:nimbus.redb", value_name = "redb:PATH|memory", value_parser = parse_store)]
    store: Store,

    /// Treat every kind as complete, whether a publisher has synced it or not.
    ///
    /// For trying things out. After a restart, agents remove what has not been published again yet.
    #[arg(
        long, default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true,
        action = ArgAction::Set, value_name = "BOOL", value_parser = BoolishValueParser::new(),
    )]
    assume_complete: bool,

    /// Seconds between bookmarks, which tell an idle subscriber that it has everything.
    #[arg(long, default_value_t = 15.0, value_name = "SECONDS", value_parser = parse_seconds)]
    bookmark_interval: f64,

    /// Seconds after which a connection is asked whether it is still there; it is closed if the answer takes as long.
    ///
    /// The question waits behind what is on its way already: on a narrow line, that is some 256 KiB at least.
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = parse_seconds)]
    keepalive: f64,

    /// Seconds over which subscribers are sent away when the bus stops.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = parse_seconds)]
    drain: f64,

    /// Seconds after which an agent without a session is lost.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", value_parser = parse_seconds)]
    lost_after: f64,

    /// Seconds after which an agent without a session is forgotten.
    #[arg(long, default_value_t = 86_400.0, value_name = "SECONDS", value_parser = parse_seconds)]
    forget_after: f64,

    /// Threads that serve; 0 takes as many as there are processors.
    #[arg(long, default_value_t = 0, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(0..=1024))]
    threads: u16,

    #[command(flatten)]
    log: LogArguments,

    #[command(flatten)]
    limits: LimitArguments,
}

/// Long enough to be cheap, short enough not to be noticed.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// As the subcommand is called.
const NAME: &str = "serve";

/// Where health and metrics are told.
#[derive(Debug, Clone, Copy)]
enum Admin {
    Off,
    At(SocketAddr),
}

#[derive(Debug, Clone)]
enum Store {
    Memory,
    Redb(PathBuf),
}

/// Runs a bus, as the command line of this `program` says; `given` is what it says without a file.
pub(crate) async fn run(given: &Arguments, program: clap::Command, verbose: u8) -> Result<(), String> {
    let configuration = Configuration::read(program, NAME, env::args_os(), given.config.as_ref())?;
    let arguments: Arguments = configuration.arguments()?;
    let config = arguments.config(|option| configuration.name(option))?;
    if arguments.print_config {
        say(&configuration.to_toml());
        return Ok(());
    }
    arguments.log.start(verbose);
    serve(arguments, config).await
}

/// Runs a bus on a socket, until it is told to stop.
pub(crate) async fn serve(arguments: Arguments, config: Config) -> Result<(), String> {
    let Arguments { listen, admin, store, assume_complete, .. } = arguments;
    let listener = listening::listen(listen)
        .map_err(|error| format!("cannot listen on {listen}: {error} (hint: is another bus running there?)"))?;
    let address = listener.local_addr().map_err(|error| format!("cannot tell the address: {error}"))?;
    let mut lines = format!("listening on {address}\n");
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    process::register(&mut registry, store.path());
    let pages = Arc::new(Pages::new(registry));
    let telling = match admin {
        Admin::Off => None,
        Admin::At(at) => {
            let listener = listening::listen(at).map_err(|error| {
                let hint = "--admin takes another address, port 0 any free one, and none does without";
                format!("cannot listen on {at} for health and metrics: {error} (hint: {hint})")
            })?;
            let address = listener.local_addr().map_err(|error| format!("cannot tell the address: {error}"))?;
            lines.push_str(&format!("admin on {address}\n"));
            // Reading a large file takes a while, in which whoever asks is told so.
            Some(tokio::spawn(admin::serve(listener, pages.clone())))
        }
    };
    let (connections, open_files) = (config.limits.connections, nimbus_client::allow_open_files());
    let bus = open(&store, config, metrics).await?;
    pages.set(bus.clone());
    let state = bus.store().state();
    let (epoch, revision, objects) = (state.epoch(), state.head(), state.objects());
    drop(state);
    let incoming = TcpListenerStream::new(listener).then(prepare);
    // Whoever has read the first line may stop it at once, and well.
    let stop = shutdown::signals().map_err(|error| format!("cannot wait for signals: {error}"))?;
    say(&lines);
    tracing::info!(%address, %epoch, %revision, objects, %store, assume_complete, "bus started");
    if let Some(open_files) = open_files.filter(|files| *files < connections as u64) {
        tracing::info!(open_files, connections, "open files are fewer than connections may be (hint: ulimit -n)");
    }
    let served = bus.serve(incoming, stop).await.map_err(|error| error.to_string());
    if let Some(telling) = telling {
        telling.abort();
        // It ends because it was told to.
        let _ = telling.await;
    }
    served?;
    tracing::info!("bus stopped");
    Ok(())
}

// === impl Arguments ===

impl Arguments {
    /// How many threads serve, if somebody says so: on the command line of this `program`, in the environment or in a file. What
    /// is wrong with these is said when the bus is run.
    pub(crate) fn threads(&self, program: clap::Command) -> Option<NonZeroUsize> {
        let configuration = Configuration::read(program, NAME, env::args_os(), self.config.as_ref()).ok()?;
        let arguments: Self = configuration.arguments().ok()?;
        NonZeroUsize::new(arguments.threads.into())
    }

    /// What a bus is told. `name` is how to speak of an option.
    pub(crate) fn config(&self, name: impl Fn(&str) -> String) -> Result<Config, String> {
        let seconds = Duration::from_secs_f64;
        let limits = self.limits.to_limits();
        Ok(Config {
            assume_complete: self.assume_complete,
            bookmark_interval: seconds(self.bookmark_interval),
            keepalive: seconds(self.keepalive),
            drain: seconds(self.drain),
            lost_after: seconds(self.lost_after),
            forget_after: seconds(self.forget_after),
            limits: limits.map_err(|misfit| format!("{}: {}", name(misfit.option), misfit.expected))?,
            ..Config::new(Epoch(rand::random()), rand::random())
        })
    }

    /// What it logs, and how.
    pub(crate) fn log(&self) -> &LogArguments {
        &self.log
    }
}

/// Opening a file takes time in proportion to it, and must not hold up anybody else.
async fn open(store: &Store, config: Config, metrics: Metrics) -> Result<Bus, String> {
    let Store::Redb(path) = store.clone() else { return Ok(Bus::new(config, metrics)) };
    let opened = tokio::task::spawn_blocking(move || Bus::open(&path, config, metrics)).await;
    let opened = opened.map_err(|error| format!("opening the store failed: {error}"))?;
    opened.map_err(|error| described(&error))
}

/// Writes to standard output, all at once: who started the bus reads the first line, and may not wait for more.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whether anybody reads it is their business.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
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

// === impl Store ===

impl Store {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Memory => None,
            Self::Redb(path) => Some(path.clone()),
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

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "expected an address and a port, such as 127.0.0.1:7400 or [::]:7400".to_owned())
}

fn parse_admin(text: &str) -> Result<Admin, String> {
    match text.parse() {
        _ if text == "none" => Ok(Admin::Off),
        Ok(address) => Ok(Admin::At(address)),
        Err(_) => Err("expected an address and a port, such as 127.0.0.1:7401, or none".to_owned()),
    }
}

fn parse_store(text: &str) -> Result<Store, String> {
    match text.split_once(':') {
        None if text == "memory" => Ok(Store::Memory),
        Some(("redb", path)) if !path.is_empty() => Ok(Store::Redb(path.into())),
        _ => Err("expected redb:PATH, such as redb:/var/lib/nimbus/store.redb, or memory".to_owned()),
    }
}

/// An error with all that caused it, as far as it does not say so itself.
fn described(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text.push_str(&format!(": {why}"));
        }
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
