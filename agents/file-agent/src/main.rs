//! An agent that keeps files as the bus says.

mod command;
mod directories;
mod durable;
mod file;
mod handler;
mod ledger;
mod node;
mod options;
mod owner;
mod path;
mod record;
mod refusal;
mod root;
mod shutdown;
mod stamp;
mod steps;
mod tail;
mod wanted;
mod writer;

use std::{io::IsTerminal as _, process::ExitCode, time::Duration};

use clap::Parser as _;
use nimbus_agent::Agent;
use tracing_subscriber::EnvFilter;

use crate::{
    command::Allowed,
    handler::{Config, Files},
    options::Options,
};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    start_logging();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
            {
                eprintln!("file-agent: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), String> {
    let Options { id, bus, root, state, label, allow, observe_interval } = options;
    let cache = state.join("cache.redb");
    let files = Files::open(Config { root, state, allowed: Allowed::new(allow) }).map_err(|error| error.to_string())?;
    let mut agent = Agent::builder(&id, &bus)
        .cache(cache)
        .handle(files)
        .observe_every(Duration::from_secs_f64(observe_interval))
        .software(concat!("file-agent/", env!("CARGO_PKG_VERSION")));
    for (key, value) in &label {
        agent = agent.label(key, value);
    }
    let agent = agent.build().map_err(|error| error.to_string())?;
    tracing::info!(agent.id = %id, %bus, "agent started");
    agent.run_until(shutdown::requested()).await.map_err(|error| error.to_string())?;
    tracing::info!("agent stopped");
    Ok(())
}

/// People read lines, programs read JSON; `NIMBUS_LOG` says how much.
fn start_logging() {
    let filter = EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { logs.init() } else { logs.json().init() }
}
