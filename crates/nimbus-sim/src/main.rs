//! The simulation as a program.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what it is for")]

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs everything, with everything that can go wrong, from seeds.
#[derive(Debug, Parser)]
#[command(name = "nimbus-sim", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs one seed, and tells what happened if something was wrong.
    Once(command::once::Arguments),
    /// Runs one seed several times, and fails if that is not always the same.
    Repeat(command::repeat::Arguments),
    /// Runs as many seeds as fit into a time, or those in a file.
    Seeds(command::seeds::Arguments),
    /// Runs one simulation on and on, and says how fast it is and how much memory it takes.
    Soak(command::soak::Arguments),
    /// Runs a list of deliberate bugs, and fails if one of them is not found.
    Planted(command::planted::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Once(arguments) => command::once::run(&arguments),
        Command::Repeat(arguments) => command::repeat::run(&arguments),
        Command::Seeds(arguments) => command::seeds::run(&arguments),
        Command::Soak(arguments) => command::soak::run(&arguments),
        Command::Planted(arguments) => command::planted::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("nimbus-sim: {error:#}");
        ExitCode::from(2)
    })
}
