//! The `nimbus` command.

mod limits;
mod serve;
mod shutdown;

use std::{io::IsTerminal as _, process::ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Distributes desired state to thousands of machines, and knows who has it.
#[derive(Debug, Parser)]
#[command(name = "nimbus", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a bus.
    Serve(Box<serve::Arguments>),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    start_logging();
    let result = match command {
        Command::Serve(arguments) => serve::run(*arguments).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
            {
                eprintln!("nimbus: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

/// People read lines, programs read JSON; `NIMBUS_LOG` says how much.
fn start_logging() {
    let filter = EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { logs.init() } else { logs.json().init() }
}
