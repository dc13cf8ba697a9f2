//! Events through the controller kit, beside kube-runtime. The program that measures both is a crate of its own, because
//! it brings all of Kubernetes with it.

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::report::{Report, Row};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Objects that are listed.
    #[arg(long, value_delimiter = ',', default_value = "100000,400000", value_name = "NUMBERS")]
    objects: Vec<u64>,

    /// Where children go: by the client of kube-runtime, into a map, or into a collection.
    #[arg(long, value_delimiter = ',', default_value = "client,map,collection", value_name = "WHERE")]
    publish: Vec<String>,

    /// Rounds; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
}

/// Runs all of it.
pub(crate) async fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let program = std::env::current_exe()?.with_file_name("nimbus-bench-kube");
    if !program.exists() {
        let hint = "cargo build --release -p nimbus-bench-kube";
        let error = anyhow::anyhow!("{} does not exist, build it: {hint}", program.display());
        for system in ["ctkit", "kube-runtime"] {
            report.missing(system, &error)?;
        }
        return Ok(());
    }
    let runs = arguments
        .objects
        .iter()
        .flat_map(|objects| arguments.publish.iter().map(move |how| (objects, how)));
    for (objects, publish) in runs {
        let (objects, rounds) = (objects.to_string(), arguments.repeat.to_string());
        let output = Command::new(&program)
            .args(["--objects", &objects, "--rounds", &rounds, "--publish", publish])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(output.status.success(), "{} failed: {}", program.display(), output.status);
        let text = String::from_utf8(output.stdout)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let rows: Vec<Row> = lines.filter(|line| line["system"].is_string()).map(|line| row(&line, publish)).collect();
        ensure!(!rows.is_empty(), "{} said nothing that can be read: {text}", program.display());
        report.measurements(&rows)?;
    }
    Ok(())
}

fn row(line: &Value, publish: &str) -> Row {
    let peak = line["peak_rss_kib"].as_f64().map(|kib| kib / 1024.0);
    vec![
        ("system", line["system"].clone()),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("subscribers", json!(0)),
        ("batch", json!(1)),
        ("publish", json!(publish)),
        ("objects", line["objects"].clone()),
        ("objects_per_s", line["objects_per_second"].clone()),
        ("seconds", line["seconds"].clone()),
        ("server_cpu_s", line["cpu_seconds"].clone()),
        ("peak_rss_mb", json!(peak)),
    ]
}
