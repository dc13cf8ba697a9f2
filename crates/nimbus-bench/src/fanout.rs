//! One publisher, many subscribers, as much as goes through.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::time::Instant;

use crate::{
    comparison::{Case, Compared, Comparison, Figures},
    crowd::Crowd,
    report::Report,
    system::{Host, System},
    usage::Usage,
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    compared: Compared,

    /// Subscribers, each with a connection of its own.
    #[arg(long, value_delimiter = ',', default_value = "1000,4000", value_name = "NUMBERS")]
    subscribers: Vec<u64>,

    /// Objects that are published at once.
    #[arg(long, value_delimiter = ',', default_value = "1,16,256", value_name = "NUMBERS")]
    batches: Vec<u64>,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,
}

/// Everything that can be measured like this.
const SYSTEMS: [System; 8] = [
    System::Nimbus,
    System::NimbusForeign,
    System::Etcd,
    System::EtcdTxn,
    System::NatsKv,
    System::Nats,
    System::Valkey,
    System::Tcp,
];

/// Longer than the slowest takes for one batch.
const PATIENCE: Duration = Duration::from_secs(60);

/// Before it counts, servers have grown their buffers.
const WARM_UP: f64 = 0.2;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.subscribers.iter().copied().max().unwrap_or(0)
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let mut loads = Vec::new();
    for subscribers in &arguments.subscribers {
        loads.extend(arguments.batches.iter().map(|batch| (*subscribers, *batch, 0)));
    }
    let mut comparison = Comparison::begin(report, &arguments.compared, &SYSTEMS, "cpu_us_per_delivery", None)?;
    comparison.run(&loads, async |case| measure(arguments, case).await).await
}

/// A batch is published when everybody has the one before: nothing is overtaken, and nobody is sent less.
async fn measure(arguments: &Arguments, case: Case) -> anyhow::Result<Figures> {
    let Case { subscribers, batch, system, .. } = case;
    let host = Host::start(system, arguments.bytes as usize).await?;
    let feeder = host.feeder(batch).await?;
    let crowd = attach(&host, subscribers).await?;
    let numbers: Vec<u64> = (0..batch).collect();
    let mut version = 1;
    let mut run = async |seconds: f64| {
        let began = Instant::now();
        while began.elapsed().as_secs_f64() < seconds {
            version += 1;
            crowd.expect(batch);
            feeder.publish(&numbers, version).await?;
            let all = tokio::time::timeout(PATIENCE, crowd.wait_for_all()).await;
            all.with_context(|| format!("{} subscribers did not get a batch", crowd.behind()))??;
        }
        anyhow::Ok(began.elapsed())
    };
    run(arguments.compared.seconds * WARM_UP).await?;
    let (before, own, (events, bytes)) = (host.usage()?, Usage::own()?, crowd.seen());
    let elapsed = run(arguments.compared.seconds).await?.as_secs_f64();
    let (after, own_after, (events_after, bytes_after)) = (host.usage()?, Usage::own()?, crowd.seen());
    let deliveries = (events_after - events) as f64;
    let cpu = (after.cpu - before.cpu).as_secs_f64();
    Ok(vec![
        ("cpu_us_per_delivery", cpu * 1e6 / deliveries),
        ("deliveries_per_s", deliveries / elapsed),
        ("server_cpu_s", cpu),
        ("peak_rss_mb", after.peak_kib as f64 / 1024.0),
        ("bytes_per_delivery", (bytes_after - bytes) as f64 / deliveries),
        ("generator_cpu_percent", 100.0 * (own_after.cpu - own.cpu).as_secs_f64() / elapsed),
    ])
}

/// Connects as many subscribers, and waits until all of them will be sent what is published.
pub(crate) async fn attach(host: &Host, subscribers: u64) -> anyhow::Result<Crowd> {
    let crowd = Crowd::open(host.address, subscribers, &host.begin()).await?;
    host.watch(subscribers, false).await?;
    Ok(crowd)
}
