//! A subscriber stops reading through many updates, and then reads on.
//!
//! The same load runs on a fresh bus without such a subscriber, with one, and with one that grants credit; what the bus
//! holds on to more than without is what the subscriber costs.

use std::fmt;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    held::Progress,
    objects::{agent, name, object},
    publisher::Publisher,
    report::{Report, Row, median},
    server::Server,
    subscriber::Subscriber,
    usage::Usage,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Updates in all.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    updates: u64,

    /// Objects that are updated, in turn.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    objects: u64,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,

    /// Subscribers that stall. More than one tells the cost of one from the noise of memory allocation.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    stalled: u64,

    /// What the subscriber with credit grants.
    #[arg(long, default_value_t = 32 << 10, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    credit: u64,

    /// Rounds; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    Stalled,
    Credit,
}

/// One run.
#[derive(Debug)]
struct Outcome {
    before: Usage,
    after: Usage,
    updates_per_second: f64,
    /// Of the subscriber that had most.
    caught_up: CaughtUp,
}

/// What a subscriber was sent after it read on.
#[derive(Debug, Clone, Copy, Default)]
struct CaughtUp {
    /// Events of the last group, which is the catch-up itself.
    group: u64,
    /// What came before it: it had left the bus, or was about to, when the subscriber stalled.
    in_flight: u64,
    in_flight_bytes: u64,
    restarts: u64,
}

/// Operations in one transaction, and transactions at the same time.
const BATCH: u64 = 256;
const IN_FLIGHT: usize = 4;

/// What may be under way to a subscriber that stalls: its window (64 KiB), the send buffer of the transport (400 KiB),
/// the frame that fills it (256 KiB), and the rest of the group that this frame belongs to.
const MAX_IN_FLIGHT_BYTES: u64 = 1 << 20;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.stalled
    }

    fn subscribers_in(&self, who: Who) -> u64 {
        if who == Who::Nobody { 0 } else { self.stalled }
    }
}

// === impl Who ===

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "nobody",
            Self::Stalled => "stalled",
            Self::Credit => "with credit",
        })
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let mut runs = Vec::new();
    for round in 1..=arguments.repeat {
        for who in [Who::Nobody, Who::Stalled, Who::Credit] {
            report.progress(&format!("round {round} of {}: {who}", arguments.repeat));
            runs.push((who, run_once(arguments, who).await.with_context(|| format!("round {round}, {who}"))?));
        }
    }
    let of = |who: Who, figure: fn(&Outcome) -> f64| {
        median(runs.iter().filter(|(other, _)| *other == who).map(|(_, outcome)| figure(outcome)))
    };
    let after = |who| of(who, |outcome| outcome.after.rss_kib as f64);
    let range = |who: Who| {
        let figures = || runs.iter().filter(|(other, _)| *other == who).map(|(_, outcome)| outcome.after.rss_kib);
        format!("{}-{}", figures().min().unwrap_or(0), figures().max().unwrap_or(0))
    };
    let row = |who: Who| -> Row {
        let subscribers = arguments.subscribers_in(who);
        let caused = after(who) - after(Who::Nobody);
        vec![
            ("who", json!(who.to_string())),
            ("subscribers", json!(subscribers)),
            ("updates", json!(arguments.updates)),
            ("objects", json!(arguments.objects)),
            ("bytes", json!(arguments.bytes)),
            ("RSS before KiB", json!(of(who, |outcome| outcome.before.rss_kib as f64))),
            ("after KiB", json!(after(who))),
            ("after, all rounds", json!(range(who))),
            ("peak KiB", json!(of(who, |outcome| outcome.after.peak_kib as f64))),
            ("caused by each KiB", json!(caused / subscribers.max(1) as f64)),
            ("updates/s", json!(of(who, |outcome| outcome.updates_per_second).round())),
            ("CPU us/update", json!(of(who, cpu_seconds) * 1e6 / arguments.updates as f64)),
            ("events in flight", json!(of(who, |outcome| outcome.caught_up.in_flight as f64))),
            ("bytes in flight", json!(of(who, |outcome| outcome.caught_up.in_flight_bytes as f64))),
            ("events to catch up", json!(of(who, |outcome| outcome.caught_up.group as f64))),
            ("restarts", json!(of(who, |outcome| outcome.caught_up.restarts as f64))),
        ]
    };
    report.table(&[row(Who::Nobody), row(Who::Stalled), row(Who::Credit)])?;

    let most = |figure: fn(&CaughtUp) -> u64| runs.iter().map(|(_, outcome)| figure(&outcome.caught_up)).max();
    let (group, bytes) = (most(|caught_up| caught_up.group), most(|caught_up| caught_up.in_flight_bytes));
    report.checked("each stalled subscriber holds what List shows, and what the digest of its bookmark proves")?;
    report.must(
        group.is_some_and(|group| group <= arguments.objects),
        &format!("it is sent each object once at most to catch up: {} events", group.unwrap_or(0)),
    )?;
    report.must(
        bytes.is_some_and(|bytes| bytes <= MAX_IN_FLIGHT_BYTES),
        &format!("at most {MAX_IN_FLIGHT_BYTES} bytes were under way when it stalled: {}", bytes.unwrap_or(0)),
    )
}

async fn run_once(arguments: &Arguments, who: Who) -> anyhow::Result<Outcome> {
    let bytes = arguments.bytes as usize;
    let server = Server::start(&["--bookmark-interval", "1"]).await?;
    let publisher = Publisher::open(server.address).await?;
    publisher
        .sync((0..arguments.objects).map(move |number| object(name(number), 0, bytes)))
        .await?;
    let credit = if who == Who::Credit { arguments.credit } else { 0 };
    let mut subscribers = Vec::new();
    for number in 0..arguments.subscribers_in(who) {
        let mut subscriber = Subscriber::open(server.address, agent(number), credit).await?;
        subscriber.catch_up().await?;
        subscribers.push(subscriber);
    }

    // From here on nobody reads, but every connection goes on taking what its window allows.
    let before = server.steady_usage().await?;
    let began = Instant::now();
    let head = load(arguments, &publisher).await?;
    let updates_per_second = arguments.updates as f64 / began.elapsed().as_secs_f64();
    let after = server.steady_usage().await?;

    let mut caught_up = CaughtUp::default();
    for mut subscriber in subscribers {
        let this = read_on(&mut subscriber, head).await?;
        ensure!(subscriber.held.is_exactly(&subscriber.list().await?), "a subscriber does not hold what List shows");
        if this.in_flight_bytes >= caught_up.in_flight_bytes {
            caught_up = this;
        }
    }
    Ok(Outcome { before, after, updates_per_second, caught_up })
}

/// Updates all objects in turn, and returns the last revision.
async fn load(arguments: &Arguments, publisher: &Publisher) -> anyhow::Result<u64> {
    let Arguments { updates, objects, bytes, .. } = *arguments;
    let batch = BATCH.min(objects);
    let mut calls = JoinSet::new();
    let mut head = 0;
    for first in (0..updates).step_by(usize::try_from(batch)?) {
        if calls.len() == IN_FLIGHT
            && let Some(done) = calls.join_next().await
        {
            head = head.max(done??);
        }
        let numbers = first..(first + batch).min(updates);
        let batch = numbers.map(|number| object(name(number % objects), number + 1, bytes as usize)).collect();
        let publisher = publisher.clone();
        calls.spawn(async move { publisher.update(batch).await });
    }
    while let Some(done) = calls.join_next().await {
        head = head.max(done??);
    }
    Ok(head)
}

/// Reads until a bookmark proves that everything up to `head` is here.
async fn read_on(subscriber: &mut Subscriber, head: u64) -> anyhow::Result<CaughtUp> {
    let before = subscriber.held.tally;
    let mut caught_up = CaughtUp::default();
    let (mut read, mut last_group) = (before, before);
    loop {
        match subscriber.next().await? {
            Progress::Group { events, .. } => {
                caught_up.group = events;
                (last_group, read) = (read, subscriber.held.tally);
            }
            Progress::Bookmark { revision } if revision >= head => break,
            _ => {}
        }
    }
    let now = subscriber.held.tally;
    caught_up.in_flight = (now.puts + now.removals) - (before.puts + before.removals) - caught_up.group;
    caught_up.in_flight_bytes = last_group.bytes - before.bytes;
    caught_up.restarts = now.restarts - before.restarts;
    Ok(caught_up)
}

fn cpu_seconds(outcome: &Outcome) -> f64 {
    (outcome.after.cpu - outcome.before.cpu).as_secs_f64()
}
