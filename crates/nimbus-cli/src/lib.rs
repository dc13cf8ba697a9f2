//! The `nimbus` command. The library is the whole of it, so that others can feed its decoders; the program only runs it.

mod admin;
mod age;
mod agent_table;
mod client;
mod command;
mod configuration;
mod dashboard;
mod demo;
mod description;
mod document;
mod editor;
mod failure;
mod file;
mod following;
#[doc(hidden)]
pub mod fuzzing;
mod goal;
mod input;
mod intake;
mod interrupt;
mod kinds;
mod limits;
mod listening;
mod listing;
mod logging;
mod manifest;
mod naming;
mod new;
mod object_table;
mod options;
mod output;
mod problems;
mod process;
mod progress;
mod propagation_report;
mod reading;
mod schemas;
mod screen;
mod sending;
mod serve;
mod shutdown;
mod waiting;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tokio::runtime;

use crate::{
    command::{
        agents, apply, completion, delete, describe, diff, edit, explain, get, kinds as kinds_command, list,
        new as new_command, propagation, register, top, version, wait, watch,
    },
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
    #[command(mut_args = options::from_environment)]
    Serve(Box<serve::Arguments>),
    /// See it work: a bus, a controller and agents on this machine, and a story that is told while it happens.
    Demo(demo::Arguments),
    Get(get::Arguments),
    List(list::Arguments),
    Kinds(kinds_command::Arguments),
    Register(register::Arguments),
    Apply(apply::Arguments),
    Diff(diff::Arguments),
    Edit(edit::Arguments),
    Delete(delete::Arguments),
    Describe(describe::Arguments),
    Agents(agents::Arguments),
    Propagation(propagation::Arguments),
    Wait(wait::Arguments),
    Explain(explain::Arguments),
    Watch(watch::Arguments),
    Top(top::Arguments),
    New(new_command::Arguments),
    Version(version::Arguments),
    Completion(completion::Arguments),
}

/// Does what the arguments of this process say, on as many threads.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut runtime = runtime::Builder::new_multi_thread();
    if let Command::Serve(serve) = &arguments.command
        && let Some(threads) = serve.threads(Arguments::command())
    {
        runtime.worker_threads(threads.get());
    }
    match runtime.enable_all().build() {
        Ok(runtime) => runtime.block_on(run_arguments(arguments)),
        Err(error) => Failure::from(format!("cannot start threads: {error}")).report(),
    }
}

async fn run_arguments(Arguments { command, verbose }: Arguments) -> ExitCode {
    match &command {
        // A bus says what happens to it, and is told how much in its own way.
        Command::Serve(_) => {}
        // It has a story to tell, in which everybody's notes would get lost.
        Command::Demo(demo) if !demo.is_bus() => logging::start("error", verbose),
        Command::Demo(_) => {}
        _ => logging::start("warn", verbose),
    }
    // Whoever serves or writes ends by itself, and says how far it has come; everything else just stops.
    let ends_itself = matches!(
        command,
        Command::Serve(_) | Command::Demo(_) | Command::Apply(_) | Command::Edit(_) | Command::Delete(_)
    );
    let running = Box::pin(run(command, verbose));
    let ended = if ends_itself { running.await } else { interrupt::or(running).await };
    ended.unwrap_or_else(|failure| failure.report())
}

async fn run(command: Command, verbose: u8) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Serve(arguments) => serve::run(&arguments, Arguments::command(), verbose).await.map_err(Failure::from),
        Command::Demo(arguments) => return Ok(demo::run(arguments, verbose).await),
        Command::Get(arguments) => get::run(&arguments).await,
        Command::List(arguments) => list::run(&arguments).await,
        Command::Kinds(arguments) => kinds_command::run(&arguments).await,
        Command::Register(arguments) => register::run(&arguments).await,
        Command::Apply(arguments) => apply::run(&arguments).await,
        Command::Diff(arguments) => diff::run(&arguments).await,
        Command::Edit(arguments) => edit::run(&arguments).await,
        Command::Delete(arguments) => delete::run(&arguments).await,
        Command::Describe(arguments) => describe::run(&arguments).await,
        Command::Agents(arguments) => agents::run(&arguments).await,
        Command::Propagation(arguments) => propagation::run(&arguments).await,
        Command::Wait(arguments) => wait::run(&arguments).await,
        Command::Explain(arguments) => explain::run(&arguments).await,
        Command::Watch(arguments) => watch::run(&arguments).await,
        Command::Top(arguments) => top::run(&arguments).await,
        Command::New(arguments) => new_command::run(&arguments),
        Command::Version(arguments) => version::run(&arguments).await,
        Command::Completion(arguments) => completion::run::<Arguments>(&arguments),
    };
    done.map(|()| ExitCode::SUCCESS)
}
