//! What a subscriber costs that is sent nothing.

use clap::Args;

use crate::{
    comparison::{Case, Compared, Comparison, Figures},
    fanout::attach,
    report::Report,
    system::{Host, System},
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    compared: Compared,

    /// Subscribers, each with a connection of its own.
    #[arg(long, value_delimiter = ',', default_value = "1000,5000,10000", value_name = "NUMBERS")]
    subscribers: Vec<u64>,

    /// Objects that everybody has been sent, of 512 bytes each.
    #[arg(long, default_value_t = 20)]
    objects: u64,
}

const SYSTEMS: [System; 6] =
    [System::Nimbus, System::NimbusForeign, System::Etcd, System::NatsKv, System::Nats, System::Valkey];

/// Bytes of each spec.
const BYTES: usize = 512;

// === impl Arguments ===

impl Arguments {
    pub(crate) fn subscribers(&self) -> u64 {
        self.subscribers.iter().copied().max().unwrap_or(0)
    }
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let loads: Vec<_> = arguments.subscribers.iter().map(|subscribers| (*subscribers, 0, 0)).collect();
    let mut comparison = Comparison::begin(report, &arguments.compared, &SYSTEMS, "rss_kb_per_agent", None)?;
    comparison.run(&loads, async |case| measure(arguments, case).await).await
}

async fn measure(arguments: &Arguments, case: Case) -> anyhow::Result<Figures> {
    let host = Host::start(case.system, BYTES).await?;
    let _feeder = host.feeder(arguments.objects).await?;
    let alone = host.steady_usage().await?;
    let crowd = attach(&host, case.subscribers).await?;
    let connected = host.steady_usage().await?;
    let before = host.usage()?;
    tokio::time::sleep(std::time::Duration::from_secs_f64(arguments.compared.seconds)).await;
    let idle = (host.usage()?.cpu - before.cpu).as_secs_f64() / arguments.compared.seconds;
    drop(crowd);
    Ok(vec![
        ("rss_kb_per_agent", (connected.rss_kib as f64 - alone.rss_kib as f64) / case.subscribers as f64),
        ("rss_mb", connected.rss_kib as f64 / 1024.0),
        ("peak_rss_mb", connected.peak_kib as f64 / 1024.0),
        ("idle_cpu_percent", 100.0 * idle),
    ])
}
