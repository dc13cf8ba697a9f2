//! The `nimbus` command.

mod demo;
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
    /// See it work: a bus, a controller and agents on this machine, and a story that is told while it happens.
    Demo(demo::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    // The demo has a story to tell, in which everybody's notes would get lost.
    start_logging(if matches!(command, Command::Demo(_)) { "error" } else { "info" });
    let result = match command {
        Command::Serve(arguments) => serve::run(*arguments).await,
        Command::Demo(arguments) => return demo::run(arguments).await,
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
fn start_logging(otherwise: &str) {
    let filter = EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new(otherwise));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() { logs.init() } else { logs.json().init() }
}
