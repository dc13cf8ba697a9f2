//! Thousands of agents in one process, for trying out a controller at scale on a laptop.

mod behaviour;
mod options;
mod population;
mod tally;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::{options::Options, population::Population};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let filter = EnvFilter::try_from_env("NIMBUS_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let ends = options.seconds.map(Duration::from_secs_f64);
    let json = options.json;
    let population = match Population::new(options) {
        Ok(population) => population,
        Err(message) => return fail(&message),
    };
    let tally = population.tally();
    let stop = async {
        let interrupted = tokio::signal::ctrl_c();
        match ends {
            None => drop(interrupted.await),
            Some(ends) => drop(tokio::time::timeout(ends, interrupted).await),
        }
    };
    tokio::select! {
        result = population.run(stop) => match result {
            Ok(()) => {
                tally.print(json);
                ExitCode::SUCCESS
            }
            Err(message) => fail(&message),
        },
        () = tally.print_every_second(json) => unreachable!("it prints for as long as the agents run"),
    }
}

#[allow(clippy::print_stderr, reason = "the place where a command says why it failed")]
fn fail(message: &str) -> ExitCode {
    eprintln!("sim-agent: {message}");
    ExitCode::FAILURE
}
