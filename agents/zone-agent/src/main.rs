//! An agent that keeps the firewall rules of its zone in a directory.

mod kinds;
mod options;
mod zone;

use std::process::ExitCode;

use clap::Parser as _;
use nimbus_agent::Agent;
use tracing_subscriber::EnvFilter;

use crate::{options::Options, zone::Zone};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let filter = EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
            {
                eprintln!("zone-agent: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), String> {
    let Options { id, bus, zone, directory, max_statements } = options;
    let opened = Zone::open(&directory, max_statements).await;
    let rules = opened.map_err(|error| format!("cannot keep rules in {}: {error}", directory.display()))?;
    Agent::builder(&id, &bus)
        .label("zone", &zone)
        .cache(directory.join(".cache.redb"))
        .handle(rules)
        .software(concat!("zone-agent/", env!("CARGO_PKG_VERSION")))
        .run_until(shutdown())
        .await
        .map_err(|error| error.to_string())
}

/// Resolves when somebody wants it to end.
async fn shutdown() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::error!(%error, "cannot wait for signals, stopping");
    }
}
