//! Publishes to single agents, among a few connected and among many.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use nimbus_wire::v1;
use serde_json::json;
use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::{
    held::Tally,
    objects::{agent, targeted_object},
    publisher::Publisher,
    report::{Report, Row, median},
    server::Server,
    subscriber::Subscriber,
    system::System,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agents that are connected when there are many.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    agents: u64,

    /// Agents that are connected when there are few.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    few: u64,

    /// Objects of each agent.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    objects: u64,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,

    /// Publishes in each measurement, each of one object for one agent.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    publishes: u64,

    /// Agents that are published to, in turn.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    targets: u64,

    /// Rounds; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
}

/// One run.
#[derive(Debug)]
struct Outcome {
    agents: u64,
    /// Memory for each connected agent.
    kib_per_agent: f64,
    rss_kib: u64,
    /// CPU of the bus when nobody publishes, in percent of one core: pings and bookmarks.
    idle_percent: f64,
    /// One after the other, and sixteen at a time.
    sequential: Cost,
    pipelined: Cost,
}

/// What publishing costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_micros: f64,
    per_second: f64,
}

/// Publishes at the same time.
const PIPELINE: usize = 16;

/// What was published is there long before this.
const PATIENCE: Duration = Duration::from_secs(10);

/// The goal.
const MAX_RATIO: f64 = 2.0;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.agents.max(self.few)
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    ensure!(
        arguments.targets <= arguments.few.min(arguments.agents),
        "--targets {}: at most as many as --few and --agents",
        arguments.targets
    );
    ensure!(arguments.few < arguments.agents, "--few {}: fewer than --agents", arguments.few);
    let mut runs = Vec::new();
    for round in 1..=arguments.repeat {
        for agents in [arguments.few, arguments.agents] {
            report.progress(&format!("round {round} of {}: {agents} agents", arguments.repeat));
            runs.push(run_once(arguments, agents).await?);
        }
    }
    let version = System::Nimbus.version()?;
    let row = |agents: u64, at_once: usize, cost: fn(&Outcome) -> Cost| -> Row {
        let of = |figure: fn(&Cost) -> f64| {
            median(
                runs.iter()
                    .filter(|outcome| outcome.agents == agents)
                    .map(|outcome| figure(&cost(outcome))),
            )
        };
        let other = |figure: fn(&Outcome) -> f64| json!(self::of(&runs, agents, figure));
        vec![
            ("system", json!(System::Nimbus.name())),
            ("version", json!(version)),
            ("subscribers", json!(agents)),
            ("batch", json!(1)),
            ("at_once", json!(at_once)),
            ("cpu_us_per_publish", json!(of(|cost| cost.cpu_micros))),
            ("writes_per_s", json!(of(|cost| cost.per_second))),
            ("rss_kb_per_agent", other(|outcome| outcome.kib_per_agent)),
            ("rss_mb", other(|outcome| outcome.rss_kib as f64 / 1024.0)),
            ("idle_cpu_percent", other(|outcome| outcome.idle_percent)),
        ]
    };
    let mut rows = Vec::new();
    for agents in [arguments.few, arguments.agents] {
        rows.push(row(agents, 1, |outcome| outcome.sequential));
        rows.push(row(agents, PIPELINE, |outcome| outcome.pipelined));
    }
    report.measurements(&rows)?;
    report.checked("every agent that was published to ends with all of it, nobody else is sent anything")?;
    let ratio = |figure: fn(&Outcome) -> f64| of(&runs, arguments.agents, figure) / of(&runs, arguments.few, figure);
    for (how, ratio) in [
        ("one at a time", ratio(|outcome| outcome.sequential.cpu_micros)),
        ("16 at once", ratio(|outcome| outcome.pipelined.cpu_micros)),
    ] {
        let many = format!("{} agents cost {ratio:.2} x the CPU of {}", arguments.agents, arguments.few);
        report.must(ratio <= MAX_RATIO, &format!("{how}: {many}, at most {MAX_RATIO} x"))?;
    }
    Ok(())
}

/// The median of a figure among so many agents.
fn of(runs: &[Outcome], agents: u64, figure: fn(&Outcome) -> f64) -> f64 {
    median(runs.iter().filter(|outcome| outcome.agents == agents).map(figure))
}

async fn run_once(arguments: &Arguments, agents: u64) -> anyhow::Result<Outcome> {
    let Arguments { objects, bytes, .. } = *arguments;
    let server = Server::start(&[]).await?;
    let publisher = Publisher::open(server.address).await?;
    let all = (0..agents * objects)
        .map(move |number| targeted_object(agent(number / objects), number % objects, 1, bytes as usize));
    publisher.sync(all).await?;
    let alone = server.steady_usage().await?;

    let (stop, stopped) = watch::channel(());
    let mut readers = JoinSet::new();
    for subscriber in Subscriber::open_all(server.address, agents).await? {
        readers.spawn(read(subscriber, stopped.clone()));
    }
    let connected = server.steady_usage().await?;
    let idle = server.idle().await?;

    let sequential = publish(arguments, &server, &publisher, 2, 1).await?;
    let pipelined = publish(arguments, &server, &publisher, 2 + arguments.publishes, PIPELINE).await?;
    drop(stop);
    for subscriber in readers.join_all().await {
        check(arguments, subscriber?).await?;
    }
    Ok(Outcome {
        agents,
        kib_per_agent: (connected.rss_kib as f64 - alone.rss_kib as f64) / agents as f64,
        rss_kib: connected.rss_kib,
        idle_percent: 100.0 * idle,
        sequential,
        pipelined,
    })
}

/// Reads whatever comes until nobody publishes any more.
async fn read(mut subscriber: Subscriber, mut stopped: watch::Receiver<()>) -> anyhow::Result<Subscriber> {
    loop {
        tokio::select! {
            _ = stopped.changed() => return Ok(subscriber),
            progress = subscriber.next() => drop(progress?),
        }
    }
}

/// Publishes to the targets in turn, with as many calls at the same time.
async fn publish(
    arguments: &Arguments,
    server: &Server,
    publisher: &Publisher,
    first_version: u64,
    at_once: usize,
) -> anyhow::Result<Cost> {
    let Arguments { objects, bytes, publishes, targets, .. } = *arguments;
    let (before, began) = (server.usage()?, Instant::now());
    let mut calls = JoinSet::new();
    for number in 0..publishes {
        if calls.len() == at_once
            && let Some(done) = calls.join_next().await
        {
            done??;
        }
        let (target, turn) = (agent(number % targets), number / targets);
        // Calls overtake each other, so the bus counts the generations.
        let object = targeted_object(target, turn % objects, first_version + number, bytes as usize);
        let object = v1::Object { generation: 0, ..object };
        let publisher = publisher.clone();
        calls.spawn(async move { publisher.update(vec![object]).await });
    }
    while let Some(done) = calls.join_next().await {
        done??;
    }
    let cpu = server.usage()?.cpu - before.cpu;
    Ok(Cost {
        cpu_micros: cpu.as_secs_f64() * 1e6 / publishes as f64,
        per_second: publishes as f64 / began.elapsed().as_secs_f64(),
    })
}

/// Whether a target ends with what was published to it, and anybody else was sent nothing.
async fn check(arguments: &Arguments, mut subscriber: Subscriber) -> anyhow::Result<()> {
    if !(0..arguments.targets).any(|number| agent(number) == subscriber.agent) {
        let Tally { puts, removals, .. } = subscriber.held.tally;
        let quiet = puts == arguments.objects && removals == 0;
        ensure!(quiet, "{} was sent {puts} puts and {removals} removals that are not for it", subscriber.agent);
        return Ok(());
    }
    let listed = subscriber.list().await?;
    while !subscriber.held.is_exactly(&listed) {
        let progress = tokio::time::timeout(PATIENCE, subscriber.next()).await;
        progress.with_context(|| format!("{} does not hold what List shows", subscriber.agent))??;
    }
    Ok(())
}
