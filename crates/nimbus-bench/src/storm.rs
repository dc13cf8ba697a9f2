//! Everybody comes at once: fresh, or back after a restart of the server.

mod reconnect;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    comparison::{Case, Compared, Comparison, Figures},
    crowd::{Counting, Crowd},
    report::Report,
    system::{Host, System, etcd},
    usage::Usage,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    compared: Compared,

    /// Fresh subscribers that come at once.
    #[arg(long, value_delimiter = ',', default_value = "200,800", value_name = "NUMBERS")]
    fresh: Vec<u64>,

    /// Subscribers that come back at once after a restart of the bus.
    #[arg(long, value_delimiter = ',', default_value = "1250,5000", value_name = "NUMBERS")]
    returning: Vec<u64>,

    /// Of the objects, how many have changed when they come back.
    #[arg(long, value_delimiter = ',', default_value = "0,1", value_name = "PERCENTS")]
    changed: Vec<u64>,

    /// Objects, all of them for everybody.
    #[arg(long, default_value_t = 100_000)]
    objects: u64,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,
}

const SYSTEMS: [System; 4] = [System::Nimbus, System::NimbusForeign, System::Etcd, System::NatsKv];

/// The bus spreads snapshots over time so that they do not take all of a network; here they may.
const UNLIMITED: [&str; 4] = ["--snapshot-rate", "1000000000000", "--snapshot-burst", "1000000000000"];

/// Who is not in sync by then does not get there.
const PATIENCE: Duration = Duration::from_secs(600);

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.fresh.iter().chain(&self.returning).copied().max().unwrap_or(0)
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    report.say("fresh subscribers, all at once:");
    let loads: Vec<_> = arguments.fresh.iter().map(|fresh| (*fresh, 0, arguments.objects)).collect();
    let mut comparison = Comparison::begin(report, &arguments.compared, &SYSTEMS, "seconds", Some("objects"))?;
    comparison.run(&loads, async |case| fresh(arguments, case).await).await?;
    if !arguments.returning.is_empty() && !arguments.compared.only_peers {
        reconnect::run(arguments, report).await?;
    }
    Ok(())
}

async fn fresh(arguments: &Arguments, case: Case) -> anyhow::Result<Figures> {
    let Case { system, subscribers, variant: objects, .. } = case;
    let flags: &[&str] = match system {
        System::Nimbus | System::NimbusForeign | System::NimbusSingle => &UNLIMITED,
        System::Etcd => &["--unsafe-no-fsync"],
        _ => &[],
    };
    let host = Host::start_with(system, arguments.bytes as usize, flags).await?;
    let feeder = host.feeder(objects).await?;
    feeder.settled(host.address, objects).await?;
    let steady = host.steady_usage().await?;
    let (own, began) = (Usage::own()?, Instant::now());
    let all = async {
        match system {
            System::Etcd => read_pages(&host, subscribers, objects).await,
            System::NatsKv => {
                let crowd = Crowd::open(host.address, subscribers, &host.begin()).await?;
                crowd.expect(objects);
                host.watch(subscribers, true).await?;
                crowd.wait_for_all().await?;
                Ok(crowd.seen().1)
            }
            _ => {
                let at_once = usize::try_from(subscribers)?;
                let crowd = Crowd::begin(host.address, subscribers, at_once, Counting::News, &host.begin());
                crowd.wait_ready().await?;
                Ok(crowd.seen().1)
            }
        }
    };
    let bytes = tokio::time::timeout(PATIENCE, all).await.context("not everybody got everything")??;
    let seconds = began.elapsed().as_secs_f64();
    let (after, own_after) = (host.usage()?, Usage::own()?);
    Ok(vec![
        ("seconds", seconds),
        ("server_cpu_s", (after.cpu - steady.cpu).as_secs_f64()),
        ("peak_rss_mb", after.peak_kib as f64 / 1024.0),
        ("steady_rss_mb", steady.rss_kib as f64 / 1024.0),
        ("bytes_per_agent", bytes as f64 / subscribers as f64),
        ("objects_per_s", (objects * subscribers) as f64 / seconds),
        ("generator_cpu_percent", 100.0 * (own_after.cpu - own.cpu).as_secs_f64() / seconds),
    ])
}

/// As clients of etcd do that have to begin: page by page. The watch after it costs next to nothing.
async fn read_pages(host: &Host, subscribers: u64, objects: u64) -> anyhow::Result<u64> {
    let mut readers = JoinSet::new();
    let address = host.address;
    for _ in 0..subscribers {
        readers.spawn(async move {
            let client = etcd::Client::open(address).await?;
            let found = client.read_all().await?;
            ensure!(found == objects, "{objects} objects are there, {found} were read");
            anyhow::Ok(client.received())
        });
    }
    readers.join_all().await.into_iter().sum()
}
