//! The `nimbus` command.

mod client;
mod command;
mod document;
mod editor;
mod failure;
mod input;
mod intake;
mod kinds;
mod limits;
mod listing;
mod manifest;
mod naming;
mod object_table;
mod output;
mod problems;
mod progress;
mod reading;
mod schemas;
mod sending;
mod serve;
mod shutdown;
mod waiting;

use std::{io::IsTerminal as _, process::ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::{
    command::{apply, completion, delete, diff, edit, get, kinds as kinds_command, list, version},
    failure::{EXIT_CODES, Failure},
};

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
    Get(get::Arguments),
    List(list::Arguments),
    Kinds(kinds_command::Arguments),
    Apply(apply::Arguments),
    Diff(diff::Arguments),
    Edit(edit::Arguments),
    Delete(delete::Arguments),
    Version(version::Arguments),
    Completion(completion::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command, verbose } = Arguments::parse();
    start_logging(&command, verbose);
    match run(command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(arguments) => serve::run(*arguments).await.map_err(Failure::from),
        Command::Get(arguments) => get::run(&arguments).await,
        Command::List(arguments) => list::run(&arguments).await,
        Command::Kinds(arguments) => kinds_command::run(&arguments).await,
        Command::Apply(arguments) => apply::run(&arguments).await,
        Command::Diff(arguments) => diff::run(&arguments).await,
        Command::Edit(arguments) => edit::run(&arguments).await,
        Command::Delete(arguments) => delete::run(&arguments).await,
        Command::Version(arguments) => version::run(&arguments).await,
        Command::Completion(arguments) => completion::run::<Arguments>(&arguments),
    }
}

/// A bus says what happens to it; a client only what went wrong. `NIMBUS_LOG` and `-v` say how much. People read lines, and
/// programs that keep what a bus says read JSON.
fn start_logging(command: &Command, verbose: u8) {
    let serves = matches!(command, Command::Serve(_));
    let filter = match (verbose, serves) {
        (0, true) => EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        (0, false) => EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new("warn")),
        (1, _) => EnvFilter::new("debug"),
        (_, _) => EnvFilter::new("trace"),
    };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if serves && !std::io::stderr().is_terminal() { logs.json().init() } else { logs.init() }
}
