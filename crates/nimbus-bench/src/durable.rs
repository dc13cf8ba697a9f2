//! Acknowledged writes to a disk, and how long a restart takes.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    client::Connection,
    comparison::{Case, Compared, Comparison, Figures},
    histogram::Histogram,
    report::{Report, Row, median},
    server::Server,
    system::{Feeder, Host, System},
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    compared: Compared,

    /// Writers, each of which waits for the answer before it writes again.
    #[arg(long, value_delimiter = ',', default_value = "1,16,256,1024", value_name = "NUMBERS")]
    writers: Vec<u64>,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,

    /// Objects in the file that the bus is restarted with; 0 leaves this out.
    #[arg(long, value_delimiter = ',', default_value = "250000,1000000", value_name = "NUMBERS")]
    restart: Vec<u64>,
}

/// NATS takes a write to be done when it is in memory of the kernel, and has no transaction to wait for: its figure
/// would be of something else.
const SYSTEMS: [System; 2] = [System::Nimbus, System::Etcd];

/// Objects of each writer.
const OBJECTS: u64 = 16;

/// A connection carries the calls of so many writers.
const WRITERS_PER_CONNECTION: u64 = 64;

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let loads: Vec<_> = arguments.writers.iter().map(|writers| (0, 1, *writers)).collect();
    let mut comparison = Comparison::begin(report, &arguments.compared, &SYSTEMS, "writes_per_s", Some("writers"))?;
    comparison.run(&loads, async |case| measure(arguments, case).await).await?;
    for objects in arguments.restart.iter().copied().filter(|objects| *objects > 0) {
        restart(arguments, objects, report).await?;
    }
    Ok(())
}

async fn measure(arguments: &Arguments, case: Case) -> anyhow::Result<Figures> {
    let Case { system, variant: writers, .. } = case;
    let bytes = arguments.bytes as usize;
    let host = Host::start_durable(system, bytes).await?;
    let first = host.feeder(writers * OBJECTS).await?;
    let mut feeders = vec![first];
    for _ in 1..writers.div_ceil(WRITERS_PER_CONNECTION) {
        feeders.push(Feeder::connect(system, host.address, bytes).await?);
    }
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let feeder = feeders[usize::try_from(writer / WRITERS_PER_CONNECTION)?].clone();
        let (stop, written) = (stop.clone(), written.clone());
        tasks.spawn(async move {
            let mut times = Histogram::default();
            for version in 2.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let began = Instant::now();
                feeder.publish(&[writer * OBJECTS + version % OBJECTS], version).await?;
                times.add(began.elapsed());
                written.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(times)
        });
    }
    let seconds = arguments.compared.seconds;
    tokio::time::sleep(Duration::from_secs_f64(0.2 * seconds)).await;
    let (before, count, began) = (host.usage()?, written.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let (after, count) = (host.usage()?, (written.load(Ordering::Relaxed) - count) as f64);
    let elapsed = began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let mut slowest = Vec::new();
    for times in tasks.join_all().await {
        slowest.push(times?.percentile(50.0).as_secs_f64() * 1e3);
    }
    Ok(vec![
        ("writes_per_s", count / elapsed),
        ("p50_ms", median(slowest)),
        ("server_cpu_s", (after.cpu - before.cpu).as_secs_f64()),
        ("cpu_us_per_publish", (after.cpu - before.cpu).as_secs_f64() * 1e6 / count.max(1.0)),
        ("peak_rss_mb", after.peak_kib as f64 / 1024.0),
    ])
}

/// Fills a file, and starts the bus with it.
async fn restart(arguments: &Arguments, objects: u64, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("nimbus-bench-").tempdir()?;
    let file = folder.path().join("store.redb");
    let flags = ["--max-objects", "20000000", "--max-bytes", "100000000000"];
    let server = Server::start_durable(&file, &flags).await?;
    let began = Instant::now();
    Feeder::open(System::Nimbus, server.address, arguments.bytes as usize, objects).await?;
    let filled = began.elapsed().as_secs_f64();
    server.kill().await?;
    let mut seconds = Vec::new();
    let mut usage = None;
    for _ in 0..arguments.compared.repeat {
        let began = Instant::now();
        let server = Server::start_durable(&file, &flags).await?;
        let found = count(&server).await?;
        seconds.push(began.elapsed().as_secs_f64());
        ensure!(found == objects, "{objects} objects were written, {found} are there after a restart");
        usage = Some(server.usage()?);
        server.kill().await?;
    }
    let usage = usage.context("nothing was measured")?;
    let seconds = median(seconds);
    let row: Row = vec![
        ("system", json!(System::Nimbus.name())),
        ("version", json!(System::Nimbus.version()?)),
        ("subscribers", json!(0)),
        ("batch", json!(0)),
        ("objects", json!(objects)),
        ("seconds", json!(seconds)),
        ("objects_per_s", json!(objects as f64 / seconds)),
        ("server_cpu_s", json!(usage.cpu.as_secs_f64())),
        ("peak_rss_mb", json!(usage.peak_kib as f64 / 1024.0)),
        ("file_mb", json!(size(&file)? as f64 / f64::from(1 << 20))),
        ("fill_seconds", json!(filled)),
    ];
    report.say("restart with as many objects in the file:");
    report.measurements(&[row])
}

async fn count(server: &Server) -> anyhow::Result<u64> {
    let request = nimbus_wire::v1::ListKindsRequest {};
    let kinds = Connection::open(server.address)
        .await?
        .bus()
        .list_kinds(request)
        .await?
        .into_inner()
        .kinds;
    Ok(kinds.iter().map(|kind| kind.objects).sum())
}

fn size(file: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(file)?.len())
}
