//! What an object costs that is only kept.

use clap::Args;

use crate::{
    comparison::{Case, Compared, Comparison, Figures},
    report::Report,
    system::{Host, System},
};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    compared: Compared,

    /// Objects that are there.
    #[arg(long, value_delimiter = ',', default_value = "250000,1000000", value_name = "NUMBERS")]
    objects: Vec<u64>,

    /// Bytes of each spec.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    bytes: u32,
}

const SYSTEMS: [System; 3] = [System::Nimbus, System::Etcd, System::NatsKv];

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let loads: Vec<_> = arguments.objects.iter().map(|objects| (0, 0, *objects)).collect();
    let mut comparison = Comparison::begin(report, &arguments.compared, &SYSTEMS, "x_payload", Some("objects"))?;
    comparison.run(&loads, async |case| measure(arguments, case).await).await
}

async fn measure(arguments: &Arguments, case: Case) -> anyhow::Result<Figures> {
    let Case { system, variant: objects, .. } = case;
    let bytes = arguments.bytes as usize;
    let flags: &[&str] = match system {
        System::Nimbus => &["--max-objects", "20000000", "--max-bytes", "100000000000"],
        System::Etcd => &["--unsafe-no-fsync"],
        _ => &[],
    };
    let host = Host::start_with(system, bytes, flags).await?;
    let alone = host.steady_usage().await?;
    let feeder = host.feeder(objects).await?;
    feeder.settled(host.address, objects).await?;
    let full = host.steady_usage().await?;
    let each = (full.rss_kib as f64 - alone.rss_kib as f64) * 1024.0 / objects as f64;
    Ok(vec![
        ("x_payload", each / bytes as f64),
        ("bytes_per_object", each),
        ("rss_mb", full.rss_kib as f64 / 1024.0),
        ("peak_rss_mb", full.peak_kib as f64 / 1024.0),
        ("server_cpu_s", (full.cpu - alone.cpu).as_secs_f64()),
    ])
}
