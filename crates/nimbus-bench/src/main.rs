//! Measures a bus: its memory, its CPU and its bytes on the wire, with one TCP connection for each subscriber.
//!
//! The bus is the real command, `nimbus serve`, in a process of its own; it is taken from the directory of this program,
//! so build both: `cargo build --release -p nimbus-cli -p nimbus-bench`. For `fleet`, so are the agents: `-p sim-agent`.

mod chart;
mod client;
mod comparison;
mod crowd;
mod durable;
mod fanout;
mod fleet;
mod held;
mod histogram;
mod idle;
mod latency;
mod memory;
mod objects;
mod operator;
mod propagation;
mod protocol;
mod publisher;
mod reactors;
mod report;
mod restart;
mod server;
mod session;
mod simulation;
mod stall;
mod status;
mod storm;
mod subscriber;
mod system;
mod targeted;
mod usage;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::report::Report;

/// Measures a bus.
#[derive(Debug, Parser)]
#[command(name = "nimbus-bench", version)]
struct Arguments {
    /// Also write each row of the table to this file, one JSON object per line.
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// How much goes to many subscribers, and what each delivery costs, beside the peers.
    Fanout(fanout::Arguments),
    /// How long a change takes to everybody at a fixed rate, beside the peers.
    Latency(latency::Arguments),
    /// Everybody comes at once: fresh, beside the peers, and back after a restart.
    Storm(storm::Arguments),
    /// What it costs when many agents say how far they are.
    Status(status::Arguments),
    /// Events through the controller kit, beside kube-runtime.
    Reactors(reactors::Arguments),
    /// What a subscriber costs that is sent nothing, beside the peers.
    Idle(idle::Arguments),
    /// What an object costs that is only kept, beside the peers.
    Memory(memory::Arguments),
    /// Acknowledged writes to a disk beside etcd, and how long a restart takes.
    Durable(durable::Arguments),
    /// Draws what was measured.
    Charts(chart::Arguments),
    /// The floor that others are compared with: a server that only writes.
    #[command(hide = true)]
    Floor,
    /// What a subscriber that stops reading costs the bus, and whether it ends exact.
    Stall(stall::Arguments),
    /// What a restart of the bus costs its subscribers, and whether they lose anything.
    Restart(restart::Arguments),
    /// What a publish to one agent costs among a few and among many.
    Targeted(targeted::Arguments),
    /// What each of many real agents costs, how fast a change reaches all of them, and what their reports cost.
    Fleet(fleet::Arguments),
    /// What it costs to ask how far an object has come, and that nothing is kept for each pair of agent and object.
    Propagation(propagation::Arguments),
}

// One thread: the bus has the other core to itself, and its CPU is what is measured.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { json, command } = Arguments::parse();
    // A program that is killed by a signal drops nothing, and would leave its bus behind.
    let result = tokio::select! {
        result = run(json, &command) => result,
        () = interrupted() => Err(anyhow::anyhow!("interrupted")),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            report::complain(&error);
            ExitCode::from(2)
        }
    }
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

async fn run(json: Option<PathBuf>, command: &Command) -> anyhow::Result<ExitCode> {
    nimbus_client::allow_open_files();
    let (name, subscribers) = match command {
        Command::Charts(arguments) => return chart::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Floor => return system::serve_floor().await.map(|()| ExitCode::SUCCESS),
        Command::Fanout(arguments) => ("fanout", arguments.subscribers()),
        Command::Latency(arguments) => ("latency", arguments.subscribers()),
        Command::Idle(arguments) => ("idle", arguments.subscribers()),
        Command::Memory(_) => ("memory", 0),
        Command::Storm(arguments) => ("storm", arguments.subscribers()),
        Command::Status(arguments) => ("status", arguments.subscribers()),
        Command::Reactors(_) => ("reactors", 0),
        Command::Durable(_) => ("durable", 0),
        Command::Stall(arguments) => ("stall", arguments.subscribers()),
        Command::Restart(arguments) => ("restart", arguments.subscribers()),
        Command::Targeted(arguments) => ("targeted", arguments.subscribers()),
        Command::Fleet(arguments) => ("fleet", arguments.subscribers()),
        Command::Propagation(arguments) => ("propagation", arguments.subscribers()),
    };
    client::check_connections(subscribers)?;
    let mut report = Report::begin(name, json.as_deref())?;
    match command {
        Command::Floor | Command::Charts(_) => {}
        Command::Fanout(arguments) => fanout::run(arguments, &mut report).await?,
        Command::Latency(arguments) => latency::run(arguments, &mut report).await?,
        Command::Idle(arguments) => idle::run(arguments, &mut report).await?,
        Command::Storm(arguments) => storm::run(arguments, &mut report).await?,
        Command::Status(arguments) => status::run(arguments, &mut report).await?,
        Command::Reactors(arguments) => reactors::run(arguments, &mut report).await?,
        Command::Memory(arguments) => memory::run(arguments, &mut report).await?,
        Command::Durable(arguments) => durable::run(arguments, &mut report).await?,
        Command::Stall(arguments) => stall::run(arguments, &mut report).await?,
        Command::Restart(arguments) => restart::run(arguments, &mut report).await?,
        Command::Targeted(arguments) => targeted::run(arguments, &mut report).await?,
        Command::Fleet(arguments) => fleet::run(arguments, &mut report).await?,
        Command::Propagation(arguments) => propagation::run(arguments, &mut report).await?,
    }
    report.finish()
}
