//! The bus is killed and started again, and everybody comes back at once.
//!
//! While its publisher is half-way through its sync, subscribers must wait and keep what they hold; when it has ended
//! and nothing changed, they must be told so in a few bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use nimbus_wire::v1::{self, Mode};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    client::Connection,
    held::{Progress, Tally},
    objects::{name, own_object},
    publisher::{self, Publisher},
    report::{Report, median},
    server::Server,
    subscriber::Subscriber,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agents, each with a connection of its own.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    subscribers: u64,

    /// Objects, all of them for everybody.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    objects: u64,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,

    /// Of the objects, how many are not the same when they are published again.
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(0..=100))]
    changed: u64,
}

/// What all subscribers together have seen since the bus came back.
#[derive(Debug, Default)]
struct Seen {
    waiting: AtomicU64,
    removals: AtomicU64,
    snapshots: AtomicU64,
    puts: AtomicU64,
}

/// What one subscriber has seen until it was in sync again.
#[derive(Debug)]
struct Return {
    bytes: u64,
    tally: Tally,
    waited: bool,
    at: Instant,
}

/// The goal, when nothing changed.
const MAX_BYTES: u64 = 300;

/// How often the bus is asked how far the sync is.
const LOOK: Duration = Duration::from_millis(20);

/// Longer than the bus takes for anything here: who is not there by then does not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Subscribers are watched for as long while the sync is half-way.
const HALF_WAY: Duration = Duration::from_secs(2);

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.subscribers
    }

    fn changed_objects(&self) -> u64 {
        (self.objects * self.changed).div_ceil(100)
    }

    /// The objects as they are published first, or again.
    fn objects(&self, again: bool) -> Vec<v1::Object> {
        let changed = if again { self.changed_objects() } else { 0 };
        let version = |number| if number < changed { 2 } else { 1 };
        let bytes = self.bytes as usize;
        (0..self.objects).map(|number| own_object(name(number), version(number), bytes)).collect()
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&[]).await?;
    let address = server.address;
    Publisher::open(address).await?.sync(arguments.objects(false).into_iter()).await?;
    report.progress("connecting");
    let subscribers = Subscriber::open_all(address, arguments.subscribers).await?;
    report.progress("all subscribers are in sync; killing the bus");

    let seen = Arc::new(Seen::default());
    let mut returns = JoinSet::new();
    for subscriber in subscribers {
        returns.spawn(come_back(subscriber, address, seen.clone()));
    }
    server.kill().await?;
    let server = Server::start_at(&address.to_string(), &[]).await?;
    let started = Instant::now();

    let (steps, stream) = mpsc::channel(1);
    let publisher = Publisher::open(address).await?;
    let sync = tokio::spawn(async move { publisher.sync_steps(ReceiverStream::new(stream)).await });
    let objects = arguments.objects(true);
    let (first, second) = objects.split_at(objects.len() / 2);
    send(&steps, std::iter::once(publisher::begin()).chain(publisher::items(first))).await?;
    let everybody_waits = async {
        let observer = Connection::open(address).await?;
        while published(&observer).await? < first.len() as u64 || count(&seen.waiting) < arguments.subscribers {
            ensure!(!sync.is_finished(), "the sync ended early");
            tokio::time::sleep(LOOK).await;
        }
        anyhow::Ok(started.elapsed())
    };
    let reconnected = tokio::time::timeout(PATIENCE, everybody_waits).await;
    let reconnected = reconnected.with_context(|| format!("only {} subscribers wait", count(&seen.waiting)))??;
    tokio::time::sleep(HALF_WAY).await;
    let half_way = (count(&seen.removals), count(&seen.snapshots), count(&seen.puts));

    report.progress("all subscribers wait; ending the sync");
    send(&steps, publisher::items(second)).await?;
    let ending = Instant::now();
    send(&steps, std::iter::once(publisher::end())).await?;
    let summary = sync.await??;
    ensure!(summary.created == arguments.objects, "the sync created {} objects", summary.created);
    let returns = tokio::time::timeout(PATIENCE, returns.join_all())
        .await
        .context("not all subscribers came back")?;
    let usage = server.usage()?;
    let returns = returns.into_iter().collect::<anyhow::Result<Vec<_>>>()?;

    let last = returns.iter().map(|back| back.at).max().unwrap_or(ending);
    let total = |figure: fn(&Tally) -> u64| returns.iter().map(|back| figure(&back.tally)).sum::<u64>();
    let (removals, puts, most) =
        (total(|tally| tally.removals), total(|tally| tally.puts), returns.iter().map(|back| back.bytes).max());
    let most = most.unwrap_or(0);
    report.table(&[vec![
        ("subscribers", json!(arguments.subscribers)),
        ("objects", json!(arguments.objects)),
        ("changed", json!(arguments.changed_objects())),
        ("bytes each median", json!(median(returns.iter().map(|back| back.bytes as f64)))),
        ("most", json!(most)),
        ("of frames", json!(median(returns.iter().map(|back| back.tally.bytes as f64)))),
        ("frames in all", json!(total(|tally| tally.frames))),
        ("puts", json!(puts)),
        ("removals", json!(removals)),
        ("back after s", json!(reconnected.as_secs_f64())),
        ("in sync s after end", json!((last - ending).as_secs_f64())),
        ("CPU s", json!(usage.cpu.as_secs_f64())),
        ("RSS KiB", json!(usage.rss_kib)),
        ("peak KiB", json!(usage.peak_kib)),
    ]])?;
    report.must(
        half_way == (0, 0, 0),
        "half-way through the sync, nobody saw a removal, a put or the end of a snapshot",
    )?;
    report.must(returns.iter().all(|back| back.waited), "everybody was told to wait")?;
    report.must(removals == 0, &format!("nothing was removed: {removals} removals"))?;
    report.checked("everybody holds what the digest of the bus says")?;
    if arguments.changed == 0 {
        report.must(puts == 0, &format!("nothing was sent again: {puts} puts"))?;
        report.must(most <= MAX_BYTES, &format!("at most {MAX_BYTES} bytes for each subscriber: {most}"))?;
    }
    Ok(())
}

/// Reads until the bus is gone, reconnects at once, and reads until everything is there again.
async fn come_back(mut subscriber: Subscriber, address: SocketAddr, seen: Arc<Seen>) -> anyhow::Result<Return> {
    while subscriber.next().await.is_ok() {}
    let mut subscriber = subscriber.reopen(address).await;
    let mut waited = false;
    let mut answered = false;
    loop {
        let before = subscriber.held.tally;
        let progress = subscriber.next().await?;
        let tally = subscriber.held.tally;
        seen.removals.fetch_add(tally.removals - before.removals, Ordering::Relaxed);
        seen.puts.fetch_add(tally.puts - before.puts, Ordering::Relaxed);
        match progress {
            Progress::Welcome(Mode::Waiting) if !waited => {
                waited = true;
                seen.waiting.fetch_add(1, Ordering::Relaxed);
            }
            Progress::Welcome(mode) => answered = mode != Mode::Waiting,
            Progress::Snapshot => drop(seen.snapshots.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
        if answered && matches!(progress, Progress::Snapshot | Progress::Bookmark { .. }) {
            return Ok(Return { bytes: subscriber.received(), tally, waited, at: Instant::now() });
        }
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// How many objects the bus has.
async fn published(observer: &Connection) -> anyhow::Result<u64> {
    let kinds = observer.bus().list_kinds(v1::ListKindsRequest {}).await?.into_inner().kinds;
    Ok(kinds.iter().map(|kind| kind.objects).sum())
}

async fn send(
    steps: &mpsc::Sender<v1::SyncRequest>,
    requests: impl Iterator<Item = v1::SyncRequest>,
) -> anyhow::Result<()> {
    for request in requests {
        steps.send(request).await.context("the bus ended the sync")?;
    }
    Ok(())
}
