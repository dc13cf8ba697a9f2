//! A whole controller: network policies become rules for the agents of their zones.
//!
//! ```console
//! $ cargo run -p ctkit --example policies                                      # with a bus of its own, in memory
//! $ cargo run -p ctkit --example policies -- --connect http://127.0.0.1:7400   # at a daemon
//! ```

mod kinds;
mod reactor;
mod rules;

use std::{env, error::Error};

use ctkit::{Controller, Manager, Remote, Store};
use tokio::net::TcpListener;

use crate::{kinds::ZoneRules, reactor::Policies};

/// Where everybody looks for a bus.
const LISTEN: &str = "127.0.0.1:7400";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let controller = Controller::new(Policies).publishes::<ZoneRules>();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => serve(LISTEN, controller).await,
        ["--listen", address] => serve(address, controller).await,
        ["--connect", url] => connect(url, controller).await,
        _ => Err("usage: policies [--listen ADDRESS | --connect URL]".into()),
    }
}

/// Policies in this process, and a bus that takes them and serves their rules.
async fn serve(address: &str, controller: Controller) -> Result<(), Box<dyn Error>> {
    let store = Store::in_memory();
    store.register_kinds(&kinds::descriptors()?)?;
    let listener = TcpListener::bind(address).await?;
    #[allow(clippy::print_stdout, reason = "whoever asked for any free port waits for this line")]
    {
        println!("listening on {}", listener.local_addr()?);
    }
    Manager::builder(store)
        .serve_bus(listener)
        .controller(controller)
        .run_until(shutdown())
        .await?;
    Ok(())
}

/// The same at a daemon.
async fn connect(url: &str, controller: Controller) -> Result<(), Box<dyn Error>> {
    let daemon = Remote::connect(url)?;
    daemon.register_kinds(&kinds::descriptors()?).await?;
    Manager::builder(daemon).controller(controller).run_until(shutdown()).await?;
    Ok(())
}

/// Resolves when somebody wants it to end.
async fn shutdown() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::error!(%error, "cannot wait for signals, stopping");
    }
}
