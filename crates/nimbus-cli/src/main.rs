//! The `nimbus` command.

mod admin;
mod configuration;
mod file;
mod limits;
mod logging;
mod options;
mod process;
mod serve;
mod shutdown;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

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
    #[command(mut_args = options::from_environment)]
    Serve(Box<serve::Arguments>),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let result = match command {
        Command::Serve(arguments) => serve::run(&arguments, Arguments::command()).await,
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
