//! Tests that need the whole: real processes, real files, and time.

mod daemon;
mod hostile;
mod instance;
mod powercut;
mod proxying;
mod simulation;

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
    /// Attacks a bus in a process of its own in many ways, and proves that it stays small and serves those who are honest.
    Hostile(hostile::Arguments),
    /// Attacks a bus in one way, for `hostile`.
    #[command(hide = true)]
    Attack(hostile::Attack),
    /// Carries connections to a bus over a line that is slow, narrow, half open, or breaks.
    Proxy(proxying::Arguments),
    /// Runs an instance of a controller that writes down what it does.
    Controller(instance::Arguments),
    /// Runs one simulation on and on, and says how fast it is and how much memory it takes.
    Soak(simulation::Soak),
    /// Runs a list of deliberate bugs, and fails if one of them is not found.
    Planted(simulation::Planted),
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        // A program that is killed by a signal drops nothing, and would leave its bus and its files behind.
        Command::Powercut(arguments) => tokio::select! {
            result = Box::pin(powercut::run(&arguments)) => result,
            () = interrupted() => Err(anyhow::anyhow!("interrupted")),
        },
        Command::Hostile(arguments) => tokio::select! {
            result = Box::pin(hostile::run(&arguments)) => result,
            () = interrupted() => Err(anyhow::anyhow!("interrupted")),
        },
        // It dies with whoever has started it.
        Command::Attack(arguments) => hostile::attack(&arguments).await,
        Command::Proxy(arguments) => tokio::select! {
            result = proxying::run(arguments) => result,
            () = interrupted() => Ok(ExitCode::SUCCESS),
        },
        // It hands over when it is stopped.
        Command::Controller(arguments) => instance::run(arguments, interrupted()).await,
        Command::Soak(arguments) => simulation::soak(&arguments),
        Command::Planted(arguments) => simulation::planted(&arguments),
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
