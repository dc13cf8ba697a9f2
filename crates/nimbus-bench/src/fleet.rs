//! A fleet of real agents: what each costs, how fast a change reaches all of them, and what it costs to ask.

pub(crate) mod reports;

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use nimbus_wire::v1::{self, AgentState};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    fleet::reports::{Cost, HOWS, How},
    objects::{name, own_object},
    operator::{self, Operator},
    publisher::Publisher,
    report::{Report, Row, median},
    server::Server,
    simulation::Simulation,
    usage::Usage,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agents, each with a connection of its own.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    agents: u64,

    /// Objects, all of them for everybody.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    objects: u64,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,

    /// Agents that are started per second.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    ramp: u64,

    /// Changes in each round, each of one object for everybody, one after the other.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    changes: u64,

    /// Reports of each agent, in each way to report.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    reports: u64,

    /// Rounds; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
}

/// One round.
#[derive(Debug)]
struct Outcome {
    /// The bus without agents, and with all of them in sync.
    alone: Usage,
    in_sync: Usage,
    /// Of the agents themselves, when they are in sync.
    simulation: Usage,
    /// From the start of the first agent until all are in sync.
    joined: Duration,
    /// CPU of the bus when nobody publishes, as a part of one core.
    idle: f64,
    changes: Vec<Change>,
    listing: Listing,
    reports: Vec<Cost>,
}

/// One change that reached everybody.
#[derive(Debug)]
struct Change {
    /// From the call of the publisher until the bus said that everybody has applied it.
    done: Duration,
    /// Of the bus, in this time.
    cpu: Duration,
    received: v1::Latency,
    applied: v1::Latency,
}

/// What it costs to list all agents.
#[derive(Debug)]
struct Listing {
    pages: u64,
    time: Duration,
    cpu: Duration,
}

/// The goal.
const MAX_KIB_PER_AGENT: f64 = 32.0;

/// Longer than anything here takes: what is not applied by then never is.
const PATIENCE: Duration = Duration::from_secs(120);

/// All agents are listed as often: CPU is counted in hundredths of a second, and once takes not many.
const LISTS: u32 = 20;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.agents
    }
}

// === impl Change ===

impl Change {
    /// CPU that the bus would not have used anyway in this time.
    fn net_micros(&self, idle: f64) -> f64 {
        micros(self.cpu) - idle * micros(self.done)
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let mut rounds = Vec::new();
    for round in 1..=arguments.repeat {
        report.progress(&format!("round {round} of {}", arguments.repeat));
        rounds.push(run_once(arguments, report).await?);
    }
    let of = |figure: fn(&Outcome) -> f64| median(rounds.iter().map(figure));
    let agents = arguments.agents as f64;
    let grown = of(|outcome| outcome.in_sync.rss_kib as f64 - outcome.alone.rss_kib as f64) / agents;
    report.table(&[vec![
        ("agents", json!(arguments.agents)),
        ("objects", json!(arguments.objects)),
        ("bytes", json!(arguments.bytes)),
        ("RSS alone KiB", json!(of(|outcome| outcome.alone.rss_kib as f64))),
        ("RSS in sync KiB", json!(of(|outcome| outcome.in_sync.rss_kib as f64))),
        ("KiB/agent", json!(grown)),
        ("peak KiB", json!(of(|outcome| outcome.in_sync.peak_kib as f64))),
        ("all in sync s", json!(of(|outcome| outcome.joined.as_secs_f64()))),
        ("CPU us/agent to join", json!(of(|outcome| micros(outcome.in_sync.cpu - outcome.alone.cpu)) / agents)),
        ("idle CPU %", json!(of(|outcome| 100.0 * outcome.idle))),
        ("sim-agent KiB/agent", json!(of(|outcome| outcome.simulation.rss_kib as f64) / agents)),
    ]])?;
    report.table(&[change_row(arguments, &rounds)])?;
    let how_row = |how: How| reports::row(how, rounds.iter().flat_map(|outcome| &outcome.reports));
    report.table(&HOWS.map(how_row))?;
    report.table(&[vec![
        ("agents listed", json!(arguments.agents)),
        ("pages", json!(of(|outcome| outcome.listing.pages as f64))),
        ("ms", json!(of(|outcome| micros(outcome.listing.time)) / 1e3)),
        ("CPU ms", json!(of(|outcome| micros(outcome.listing.cpu)) / 1e3)),
        ("CPU us/agent", json!(of(|outcome| micros(outcome.listing.cpu)) / agents)),
    ]])?;
    report
        .checked("all agents have applied everything, nothing failed, and all are listed as connected and in sync")?;
    report.must(
        grown <= MAX_KIB_PER_AGENT,
        &format!("an agent in sync costs the bus {grown:.2} KiB, at most {MAX_KIB_PER_AGENT}"),
    )
}

async fn run_once(arguments: &Arguments, report: &Report) -> anyhow::Result<Outcome> {
    let Arguments { agents, objects, bytes, ramp, .. } = *arguments;
    let server = Server::start(&[]).await?;
    let publisher = Publisher::open(server.address).await?;
    let operator = Operator::open(server.address).await?;
    let all = (0..objects).map(move |number| own_object(name(number), 1, bytes as usize));
    let revision = publisher.sync(all).await?;
    let alone = server.steady_usage().await?;

    let began = Instant::now();
    let mut simulation = Simulation::start(server.address, agents, ramp)?;
    let patience = PATIENCE + Duration::from_secs(agents / ramp);
    simulation.during(operator.wait_for(revision, agents, patience)).await?;
    let joined = began.elapsed();
    let in_sync = server.steady_usage().await?;
    let of_simulation = simulation.usage()?;
    report.progress("all agents are in sync");

    let idle = server.idle().await?;
    let mut changes = Vec::new();
    for number in 0..arguments.changes {
        let object = own_object(name(number % objects), 2 + number / objects, bytes as usize);
        let change = change(&server, &publisher, &operator, object, agents);
        changes.push(simulation.during(change).await?);
        // The next one does not begin among the last words about this one.
        server.steady_usage().await?;
    }
    let listing = simulation.during(list(&server, &operator, agents)).await?;
    drop((simulation, server));

    report.progress("all agents have had all changes; measuring reports");
    let (reports, _) = reports::measure(agents, arguments.reports, bytes as usize).await?;
    Ok(Outcome { alone, in_sync, simulation: of_simulation, joined, idle, changes, listing, reports })
}

/// Changes one object, and waits until everybody has applied it.
async fn change(
    server: &Server,
    publisher: &Publisher,
    operator: &Operator,
    object: v1::Object,
    agents: u64,
) -> anyhow::Result<Change> {
    let name = object.name.clone();
    let (before, began) = (server.usage()?, Instant::now());
    let revision = publisher.update(vec![object]).await?;
    operator.wait_for(revision, agents, PATIENCE).await?;
    let (done, cpu) = (began.elapsed(), server.usage()?.cpu - before.cpu);
    let propagation = operator.propagation(operator::object(name)).await?;
    ensure!(propagation.revision == revision, "the object was changed at {}, not {revision}", propagation.revision);
    let (received, applied) = (propagation.received_latency, propagation.applied_latency);
    Ok(Change { done, cpu, received: received.unwrap_or_default(), applied: applied.unwrap_or_default() })
}

/// Lists all agents, several times, and checks that they are as they should be.
async fn list(server: &Server, operator: &Operator, agents: u64) -> anyhow::Result<Listing> {
    let (before, began) = (server.usage()?, Instant::now());
    let mut last = (Vec::new(), 0);
    for _ in 0..LISTS {
        last = operator.agents().await?;
    }
    let (time, cpu) = (began.elapsed() / LISTS, (server.usage()?.cpu - before.cpu) / LISTS);
    let (listed, pages) = last;
    ensure!(listed.len() as u64 == agents, "{agents} agents are there, {} are listed", listed.len());
    let good = |info: &&v1::AgentInfo| info.state() == AgentState::Connected && info.in_sync;
    if let Some(bad) = listed.iter().find(|info| !good(info)) {
        anyhow::bail!("{} is listed as {}, in sync: {}", bad.agent, bad.state().as_str_name(), bad.in_sync);
    }
    Ok(Listing { pages, time, cpu })
}

fn change_row(arguments: &Arguments, rounds: &[Outcome]) -> Row {
    let changes = || rounds.iter().flat_map(|outcome| &outcome.changes);
    let of = |figure: fn(&Change) -> f64| json!(median(changes().map(figure)));
    let agents = arguments.agents as f64;
    let net = rounds
        .iter()
        .flat_map(|outcome| outcome.changes.iter().map(|change| change.net_micros(outcome.idle)));
    let longest = changes().map(|change| change.done).max().unwrap_or_default();
    vec![
        ("changes for all", json!(changes().count())),
        ("publish to done ms", of(|change| micros(change.done) / 1e3)),
        ("longest", json!(micros(longest) / 1e3)),
        ("CPU us/agent", json!(median(changes().map(|change| micros(change.cpu))) / agents)),
        ("without idle", json!(median(net) / agents)),
        ("received p50 ms", of(|change| change.received.p50_ms as f64)),
        ("received p90", of(|change| change.received.p90_ms as f64)),
        ("received p99", of(|change| change.received.p99_ms as f64)),
        ("received max", of(|change| change.received.max_ms as f64)),
        ("applied p50 ms", of(|change| change.applied.p50_ms as f64)),
        ("applied p90", of(|change| change.applied.p90_ms as f64)),
        ("applied p99", of(|change| change.applied.p99_ms as f64)),
        ("applied max", of(|change| change.applied.max_ms as f64)),
        ("latency known of", of(|change| f64::from(change.applied.count))),
    ]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
