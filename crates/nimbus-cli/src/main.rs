//! The `nimbus` command.

mod client;
mod command;
mod demo;
mod failure;
mod kinds;
mod limits;
mod listing;
mod manifest;
mod naming;
mod object_table;
mod output;
mod schemas;
mod serve;
mod shutdown;

use std::{io::IsTerminal as _, process::ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::{
    command::{completion, delete, get, kinds as kinds_command, list, version},
    failure::{EXIT_CODES, Failure},
};

/// The allocator of the system keeps half as much again for each connection.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Distributes desired state to thousands of machines, and knows who has it.
#[derive(Debug, Parser)]
#[command(name = "nimbus", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Say more about what happens, on standard error; twice, even more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a bus.
    Serve(Box<serve::Arguments>),
    /// See it work: a bus, a controller and agents on this machine, and a story that is told while it happens.
    Demo(demo::Arguments),
    Get(get::Arguments),
    List(list::Arguments),
    Kinds(kinds_command::Arguments),
    Delete(delete::Arguments),
    Version(version::Arguments),
    Completion(completion::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command, verbose } = Arguments::parse();
    start_logging(&command, verbose);
    run(command).await.unwrap_or_else(|failure| failure.report())
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Serve(arguments) => serve::run(*arguments).await.map_err(Failure::from),
        Command::Demo(arguments) => return Ok(demo::run(arguments).await),
        Command::Get(arguments) => get::run(&arguments).await,
        Command::List(arguments) => list::run(&arguments).await,
        Command::Kinds(arguments) => kinds_command::run(&arguments).await,
        Command::Delete(arguments) => delete::run(&arguments).await,
        Command::Version(arguments) => version::run(&arguments).await,
        Command::Completion(arguments) => completion::run::<Arguments>(&arguments),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// A bus says what happens to it; a client only what went wrong; the demo has a story to tell, in which everybody's notes
/// would get lost. `NIMBUS_LOG` and `-v` say how much. People read lines, and programs that keep what a bus says read JSON.
fn start_logging(command: &Command, verbose: u8) {
    let serves = matches!(command, Command::Serve(_));
    let otherwise = match command {
        Command::Serve(_) => "info",
        Command::Demo(_) => "error",
        _ => "warn",
    };
    let filter = match verbose {
        0 => EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new(otherwise)),
        1 => EnvFilter::new("debug"),
        _ => EnvFilter::new("trace"),
    };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if serves && !std::io::stderr().is_terminal() { logs.json().init() } else { logs.init() }
}
