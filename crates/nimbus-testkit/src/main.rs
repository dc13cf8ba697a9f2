//! Tests that need the whole: real processes, real files, and time.

mod powercut;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

/// Tests that need the whole.
#[derive(Debug, Parser)]
#[command(name = "nimbus-testkit", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Kills a durable bus again and again while it is written to and read, and proves that nothing is lost.
    Powercut(powercut::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command: Command::Powercut(arguments) } = Arguments::parse();
    // A program that is killed by a signal drops nothing, and would leave its bus and its files behind.
    let result = tokio::select! {
        result = Box::pin(powercut::run(&arguments)) => result,
        () = interrupted() => Err(anyhow::anyhow!("interrupted")),
    };
    result.unwrap_or_else(|error| {
        #[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
        {
            eprintln!("nimbus-testkit: {error:#}");
        }
        ExitCode::from(2)
    })
}

/// Resolves with the first SIGINT or SIGTERM, and never if signals cannot be had.
async fn interrupted() {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return std::future::pending().await };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
