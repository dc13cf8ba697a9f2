//! How long after it was published a change is everywhere, at a fixed rate.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::{task::JoinSet, time::Instant};

use crate::{
    comparison::{Case, Compared, Comparison, Figures},
    fanout::attach,
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
    #[arg(long, value_delimiter = ',', default_value = "1000", value_name = "NUMBERS")]
    subscribers: Vec<u64>,

    /// Objects that are published per second, one by one.
    #[arg(long, value_delimiter = ',', default_value = "50,200,1000", value_name = "NUMBERS")]
    rates: Vec<u64>,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,
}

const SYSTEMS: [System; 8] = [
    System::Nimbus,
    System::NimbusForeign,
    System::NimbusSingle,
    System::Etcd,
    System::NatsKv,
    System::Nats,
    System::Valkey,
    System::Tcp,
];

/// Objects that change in turn: so many that none changes again before everybody has it.
const OBJECTS: u64 = 4_000;

/// Who keeps up has delivered everything this long after the last was published.
const KEEPS_UP: Duration = Duration::from_secs(1);

/// Who has not by then will not be waited for.
const PATIENCE: Duration = Duration::from_secs(30);

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
        loads.extend(arguments.rates.iter().map(|rate| (*subscribers, 1, *rate)));
    }
    let mut comparison = Comparison::begin(report, &arguments.compared, &SYSTEMS, "p99_ms", Some("rate"))?;
    comparison.run(&loads, async |case| measure(arguments, case).await).await
}

async fn measure(arguments: &Arguments, case: Case) -> anyhow::Result<Figures> {
    let Case { subscribers, system, variant: rate, .. } = case;
    let host = Host::start(system, arguments.bytes as usize).await?;
    let feeder = host.feeder(OBJECTS).await?;
    let crowd = attach(&host, subscribers).await?;
    // The first few are slow everywhere.
    let (warm_up, published) = (rate.min(50), (rate as f64 * arguments.compared.seconds).ceil() as u64);
    for number in 0..warm_up {
        crowd.expect(1);
        feeder.publish(&[number], 2).await?;
        crowd.wait_for_all().await?;
    }
    crowd.schedule();
    let (before, own) = (host.usage()?, Usage::own()?);
    crowd.expect(published);
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for number in 0..published {
        let at = began + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(at).await;
        crowd.published(at);
        let feeder = feeder.clone();
        // Nobody waits for an answer before the next one is due.
        calls.spawn(async move { feeder.publish(&[(warm_up + number) % OBJECTS], 3 + number).await });
    }
    let last = Instant::now();
    let all = tokio::time::timeout(PATIENCE, crowd.wait_for_all()).await;
    all.with_context(|| format!("{} subscribers did not get everything", crowd.behind()))??;
    let late = last.elapsed();
    calls.join_all().await.into_iter().collect::<anyhow::Result<()>>()?;
    let elapsed = began.elapsed().as_secs_f64();
    let (after, own_after, latencies) = (host.usage()?, Usage::own()?, crowd.latencies());
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let deliveries = latencies.total() as f64;
    let cpu = (after.cpu - before.cpu).as_secs_f64();
    Ok(vec![
        ("p50_ms", millis(latencies.percentile(50.0))),
        ("p99_ms", millis(latencies.percentile(99.0))),
        ("max_ms", millis(latencies.max())),
        ("kept_up", if late <= KEEPS_UP { 1.0 } else { 0.0 }),
        ("deliveries_per_s", deliveries / elapsed),
        ("cpu_us_per_delivery", cpu * 1e6 / deliveries),
        ("server_cpu_s", cpu),
        ("generator_cpu_percent", 100.0 * (own_after.cpu - own.cpu).as_secs_f64() / elapsed),
    ])
}
