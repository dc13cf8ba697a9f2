//! Measures a controller of ours and a kube-runtime controller: both list many objects and publish one child for each.
//!
//! What is measured is the controller and nothing around it: no API server and no network. For kube-runtime, the objects
//! come from a stream of watcher events as a list does (`Init`, `InitApply` for each, `InitDone`, then silence), go
//! through a reflector into its store, and are scheduled and reconciled by kube-runtime. The reconciler builds a child
//! with a name, labels and an owner reference of its parent, and publishes it (`--publish`):
//!
//! - `client`: through the client that every controller of its kind publishes with, by server-side apply. Behind the
//!   client is a mock of an API server in this process, which keeps what it is sent and answers with the same bytes;
//! - `map`: without that client, as JSON into a map. This is less than any real one of its kind does;
//! - `collection`: with a transaction of its own into a collection of nimbus.
//!
//! For ours, a source lists the same objects as records, and an ordinary manager reacts to them. Its children go,
//! encoded as they would travel, into a map (`client` and `map`), or into the collection of a bus in this process.
//! Parents and children stay in memory on both sides. What is listed is made before the clock starts, on both sides, and
//! so is room in the maps.
//!
//! Both do the same: no statuses are written, or with `--status` each side writes the status of every object, encoded as
//! it would be sent, to the source, which counts and forgets it. What ours does beside that cannot be left out: it
//! remembers what it has published, so that it can withdraw it; kube-runtime leaves that to the server. `--remember` also
//! writes down which version was dealt with, as reactors want it that compare versions; kube-runtime has nothing like it.
//!
//! Ours begins to react while the list is still being read; kube-runtime waits for the end of the list, also if it is
//! told of the objects before.
//!
//! Time is from the first event to the last child, and to the last status if there are any. Memory is the peak of the
//! process, and each round has a process of its own. The defaults are what is fastest with 100,000 objects: an ordinary
//! [`Controller`](kube_runtime::Controller) on a runtime of many threads, with its concurrency limited. Both of its
//! queues are hash maps that are searched from the beginning for each object, so many reconciliations at a time make the
//! one slow, and few the other. It runs on the main thread, and with its client it is faster if that leaves a core to it.
//! What needs least memory is `--stream shared --run inline --threads 0 --concurrency 0`, at some cost in time.
//! `--run direct` is the same work without kube-runtime.

mod api_server;
mod controller;
mod kit;
mod progress;
mod publish;
mod report;
mod resource;
mod source;
mod usage;

use std::{
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    thread,
};

use anyhow::{Context as _, ensure};
use clap::{Parser, ValueEnum};
use tokio::{runtime, time::Instant};

use crate::{progress::Progress, publish::Publisher, report::Round, usage::Usage};

/// Measures controllers that publish a child for each of many objects.
#[derive(Debug, Clone, Parser)]
#[command(name = "nimbus-bench-kube", version, args_override_self = true)]
struct Arguments {
    /// Objects that are listed.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    objects: u64,

    /// Bytes of the payload in each spec.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    payload: u32,

    /// Whose controller.
    #[arg(long, value_enum, default_value_t = System::Both)]
    system: System,

    /// Rounds, each in a process of its own, the systems by turns; the median is reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,

    /// Where the children go.
    #[arg(long, value_enum, default_value_t = Publish::Client)]
    publish: Publish,

    /// Both write the status of every object. Not with `--publish client`.
    #[arg(long)]
    status: bool,

    /// Ours writes down which versions it has dealt with.
    #[arg(long)]
    remember: bool,

    /// How the objects reach the controller of kube-runtime.
    #[arg(long, value_enum, default_value_t = Stream::Own)]
    stream: Stream,

    /// Objects between reflector and controller, if the stream is shared.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    buffer: u32,

    /// Where the reconciler of kube-runtime runs.
    #[arg(long, value_enum, default_value_t = Run::Spawned)]
    run: Run,

    /// Reconciliations of kube-runtime at a time; 0 is no limit.
    #[arg(long, default_value_t = 512)]
    concurrency: u16,

    /// Worker threads, if not said what is fastest: one for each core, and one less for kube-runtime with its client; 0 is a
    /// runtime on the main thread.
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=256))]
    threads: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum System {
    /// kube-runtime.
    Kube,
    /// ctkit.
    Kit,
    /// One beside the other.
    Both,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Publish {
    /// Into a map by name: those of kube-runtime by its client and the mock of an API server, ours as a target gets them.
    Client,
    /// The same without the client.
    Map,
    /// Into a collection of nimbus, a transaction for each.
    Collection,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Stream {
    /// The controller drives the reflector: `Controller::for_stream`.
    Own,
    /// The reflector is a task that feeds the controller through a bounded queue: `Controller::for_shared_stream`.
    Shared,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Run {
    /// Each reconciliation is a task: `Controller::run`.
    Spawned,
    /// All are within the task of the controller: `applier`.
    Inline,
    /// In a loop over the events, without kube-runtime: what there is to do in any case.
    Direct,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::complain(&error);
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let is_client = matches!(arguments.publish, Publish::Client);
    ensure!(!(arguments.status && is_client), "the mock takes no statuses (hint: --publish map or collection)");
    let systems = match arguments.system {
        System::Both => vec![System::Kube, System::Kit],
        one if arguments.rounds == 1 => {
            report::print(&measure(arguments, one)?);
            return Ok(());
        }
        one => vec![one],
    };
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); systems.len()];
    for _ in 0..arguments.rounds {
        for (system, rounds) in systems.iter().zip(&mut rounds) {
            rounds.push(in_a_process(*system)?);
        }
    }
    report::table(&rounds);
    Ok(())
}

/// Runs this program again, for one round.
fn in_a_process(system: System) -> anyhow::Result<Round> {
    let system = system.to_possible_value().context("every system has a name")?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(std::env::args_os().skip(1))
        .args(["--system", system.get_name(), "--rounds", "1"]);
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "a round ended with {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// One round, in this process.
fn measure(arguments: &Arguments, system: System) -> anyhow::Result<Round> {
    let mut builder = match arguments.threads {
        Some(0) => runtime::Builder::new_current_thread(),
        _ => runtime::Builder::new_multi_thread(),
    };
    match arguments.threads {
        Some(0) => {}
        Some(threads) => drop(builder.worker_threads(threads.into())),
        None if system == System::Kube && matches!(arguments.publish, Publish::Client) => {
            let cores = thread::available_parallelism()?.get();
            builder.worker_threads((cores - 1).max(1));
        }
        None => {}
    }
    let runtime = builder.enable_time().build()?;
    let progress = Arc::new(Progress::new(arguments.objects * (1 + u64::from(arguments.status))));
    if system == System::Kit {
        let setting = kit::Setting::new(arguments);
        let (before, began) = (Usage::now()?, Instant::now());
        let finish = runtime.block_on(kit::run(arguments, setting, &progress))?;
        return Ok(Round::new("ctkit", arguments.objects, finish.at - began, before, finish.usage));
    }
    // A client runs a task of its own.
    let within = runtime.enter();
    let publisher = Arc::new(Publisher::new(arguments, progress)?);
    drop(within);
    let workloads = source::workloads(arguments.objects, arguments.payload);
    let (before, began) = (Usage::now()?, Instant::now());
    let finish = runtime.block_on(controller::run(arguments, workloads, &publisher))?;
    publisher.check(arguments.objects)?;
    Ok(Round::new("kube-runtime", arguments.objects, finish.at - began, before, finish.usage))
}
