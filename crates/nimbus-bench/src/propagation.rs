//! How far has this object come? What the question costs, and that nothing is kept for each pair of agent and object.
//!
//! Agents come with the right digest, so that they are sent nothing; then they report that they have applied everything,
//! and a few that something failed. All of it on a fresh bus for half and all of the agents, with half and all of the
//! objects.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use nimbus_wire::v1::{self, Mode};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    objects::{agent, name, own_object},
    operator::{self, Operator},
    publisher::Publisher,
    report::{Report, Row, median, percentile},
    server::Server,
    session::{Session, failure},
    subscriber::Subscriber,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agents, when there are all; each has a connection of its own.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(20..=50_000))]
    agents: u64,

    /// Objects, when there are all; each is for everybody.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    objects: u64,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,

    /// Questions about each target.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    calls: u64,

    /// Rounds; medians are reported.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
}

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    agents: u64,
    objects: u64,
}

/// One run.
#[derive(Debug)]
struct Outcome {
    size: Size,
    /// Memory of the bus with the objects, and with the agents and their reports, too.
    alone_kib: u64,
    rss_kib: u64,
    questions: Vec<Question>,
}

/// What it costs to ask about one target.
#[derive(Debug)]
struct Question {
    about: &'static str,
    median_ms: f64,
    p99_ms: f64,
    cpu_ms: f64,
    /// Of that, what the bus would not have used anyway in this time.
    net_cpu_ms: f64,
}

/// Agents at which something failed, and what failed there.
const FAILED_AGENTS: u64 = 10;
const FAILED_OBJECTS: u64 = 5;

/// What is asked about.
const FAILED: &str = "an object that failed at a few";
const CHANGED: &str = "an object that has just changed";
const TRANSACTION: &str = "a transaction";

/// The goals.
const MAX_MS: f64 = 5.0;
const MAX_BYTES_PER_PAIR: f64 = 1.0;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.agents
    }

    fn sizes(&self) -> [Size; 4] {
        let (agents, objects) = (self.agents, self.objects);
        let size = |agents, objects| Size { agents, objects };
        [size(agents / 2, objects / 2), size(agents / 2, objects), size(agents, objects / 2), size(agents, objects)]
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let sizes = arguments.sizes();
    let mut runs = Vec::new();
    for round in 1..=arguments.repeat {
        for size in sizes {
            let Size { agents, objects } = size;
            report.progress(&format!("round {round} of {}: {agents} agents, {objects} objects", arguments.repeat));
            runs.push(run_once(arguments, size).await?);
        }
    }
    let of = |size: Size, figure: fn(&Outcome) -> f64| {
        median(runs.iter().filter(|outcome| outcome.size == size).map(figure))
    };
    // What the agents cost, with as many objects.
    let caused = |size| of(size, |outcome| outcome.rss_kib as f64 - outcome.alone_kib as f64);
    let row = |size: Size| -> Row {
        vec![
            ("agents", json!(size.agents)),
            ("objects", json!(size.objects)),
            ("RSS without agents KiB", json!(of(size, |outcome| outcome.alone_kib as f64))),
            ("RSS with agents KiB", json!(of(size, |outcome| outcome.rss_kib as f64))),
            ("caused by agents KiB", json!(caused(size))),
            ("KiB/agent", json!(caused(size) / size.agents as f64)),
        ]
    };
    report.table(&sizes.map(row))?;
    let ask = |size: Size, about: &'static str, figure: fn(&Question) -> f64| {
        let questions = runs.iter().filter(|outcome| outcome.size == size).flat_map(|outcome| &outcome.questions);
        median(questions.filter(|question| question.about == about).map(figure))
    };
    let row = |(size, about): (Size, &'static str)| -> Row {
        vec![
            ("agents", json!(size.agents)),
            ("objects", json!(size.objects)),
            ("asked about", json!(about)),
            ("calls", json!(arguments.calls)),
            ("median ms", json!(ask(size, about, |question| question.median_ms))),
            ("p99 ms", json!(ask(size, about, |question| question.p99_ms))),
            ("CPU ms/call", json!(ask(size, about, |question| question.cpu_ms))),
            ("without idle", json!(ask(size, about, |question| question.net_cpu_ms))),
        ]
    };
    let abouts = [FAILED, CHANGED, TRANSACTION];
    let all: Vec<Row> = sizes.into_iter().flat_map(|size| abouts.map(|about| row((size, about)))).collect();
    report.table(&all)?;

    report.checked("every answer counts every agent: as applied, or as failed where it failed")?;
    let [few, more_objects, more_agents, most] = sizes;
    for about in abouts {
        let took = ask(most, about, |question| question.median_ms);
        let whom = format!("{} agents with {} objects", most.agents, most.objects);
        report.must(took < MAX_MS, &format!("{about}: {took:.2} ms among {whom}, less than {MAX_MS} ms"))?;
    }
    for (less, more) in [(few, more_objects), (more_agents, most)] {
        let pairs = less.agents * (more.objects - less.objects);
        let bytes = (caused(more) - caused(less)) * 1024.0 / pairs as f64;
        let grown = format!("from {} to {} objects, {} agents", less.objects, more.objects, less.agents);
        let costs = format!("{bytes:.3} bytes more for each pair than without agents");
        report.must(bytes < MAX_BYTES_PER_PAIR, &format!("{grown}: {costs}, less than {MAX_BYTES_PER_PAIR}"))?;
    }
    Ok(())
}

async fn run_once(arguments: &Arguments, size: Size) -> anyhow::Result<Outcome> {
    let bytes = arguments.bytes as usize;
    let server = Server::start(&[]).await?;
    let publisher = Publisher::open(server.address).await?;
    let operator = Operator::open(server.address).await?;
    publisher
        .sync((0..size.objects).map(move |number| own_object(name(number), 1, bytes)))
        .await?;
    let resume = what_all_hold(&server).await?;
    let alone = server.steady_usage().await?;

    let mut sessions = Session::open_all(server.address, size.agents, Some(resume)).await?;
    for (session, number) in sessions.iter_mut().zip(0..) {
        ensure!(session.mode == Mode::Unchanged && session.puts == 0, "an agent was sent what it held already");
        let failed = if number < FAILED_AGENTS { FAILED_OBJECTS } else { 0 };
        let failed = (0..failed).map(|object| failure(name(object), 1, 1)).collect();
        session.report_once(session.revision, failed).await?;
    }
    let changed = own_object(name(size.objects - 1), 2, bytes);
    let revision = publisher.update(vec![changed.clone()]).await?;
    for session in &mut sessions {
        session.read_until(revision).await?;
        session.report_once(revision, Vec::new()).await?;
    }
    let reported = server.steady_usage().await?;
    let idle = server.idle().await?;

    let failed = u32::try_from(FAILED_AGENTS)?;
    let mut questions = Vec::new();
    for (about, target, failed) in [
        (FAILED, operator::object(name(0)), failed),
        (CHANGED, operator::object(changed.name), 0),
        (TRANSACTION, operator::transaction(revision), 0),
    ] {
        let answer = operator.propagation(target.clone()).await?;
        let counts = (u64::from(answer.agents), u64::from(answer.applied + answer.failed), answer.failed);
        ensure!(counts == (size.agents, size.agents, failed), "{about}: (agents, told, failed) = {counts:?}");
        questions.push(ask(arguments, (&server, idle), &operator, about, &target).await?);
    }
    drop(sessions);
    Ok(Outcome { size, alone_kib: alone.rss_kib, rss_kib: reported.rss_kib, questions })
}

/// What an agent offers that holds everything: found out by the first, and the same for all, because every object is for
/// everybody.
async fn what_all_hold(server: &Server) -> anyhow::Result<v1::Resume> {
    let mut first = Subscriber::open(server.address, agent(0), 0).await?;
    first.catch_up().await?;
    let resume = first.held.resume().context("the first agent holds nothing")?;
    // The position is that of one agent; the digest says it for all.
    Ok(v1::Resume { position: None, buckets: Vec::new().into(), ..resume })
}

async fn ask(
    arguments: &Arguments,
    (server, idle): (&Server, f64),
    operator: &Operator,
    about: &'static str,
    target: &v1::Target,
) -> anyhow::Result<Question> {
    let (before, start) = (server.usage()?, Instant::now());
    let mut times = Vec::new();
    for _ in 0..arguments.calls {
        let began = Instant::now();
        operator.propagation(target.clone()).await?;
        times.push(millis(began.elapsed()));
    }
    let (cpu, time) = (server.usage()?.cpu - before.cpu, start.elapsed());
    Ok(Question {
        about,
        median_ms: median(times.iter().copied()),
        p99_ms: percentile(times, 99),
        cpu_ms: millis(cpu) / arguments.calls as f64,
        net_cpu_ms: (millis(cpu) - idle * millis(time)) / arguments.calls as f64,
    })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
