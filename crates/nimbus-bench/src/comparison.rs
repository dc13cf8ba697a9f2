//! Measures several systems in turn, several times, and shows the medians beside each other.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::{
    report::{Report, Row, median},
    system::{PEERS, System},
};

/// What is the same for all comparisons.
#[derive(Debug, Clone, Args)]
pub(crate) struct Compared {
    /// What the bus is compared with.
    #[arg(long, value_delimiter = ',', default_value = "etcd,etcd-txn,nats-kv,nats,valkey,tcp", value_name = "NAMES")]
    pub(crate) peers: Vec<System>,

    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3.0, value_parser = parse_seconds)]
    pub(crate) seconds: f64,

    /// Rounds, in each of which all systems are measured in turn; medians are reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) repeat: u64,

    /// Leave the bus out, and measure only the peers.
    #[arg(long)]
    pub(crate) only_peers: bool,
}

/// What one measurement is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Case {
    pub(crate) subscribers: u64,
    pub(crate) batch: u64,
    /// What else the question varies, such as the rate; its name is that of the comparison.
    pub(crate) variant: u64,
    pub(crate) system: System,
}

/// Named figures of one measurement.
pub(crate) type Figures = Vec<(&'static str, f64)>;

/// A comparison under way.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    report: &'a mut Report,
    arguments: Compared,
    /// The figure by which systems are compared, and what a variant is called.
    main: &'static str,
    variant: Option<&'static str>,
    versions: BTreeMap<System, String>,
    figures: BTreeMap<Case, Vec<Figures>>,
    failures: BTreeMap<Case, Vec<String>>,
}

// === impl Comparison ===

impl<'a> Comparison<'a> {
    /// Finds out which of the systems are there; those that are not are said to be missing.
    pub(crate) fn begin(
        report: &'a mut Report,
        arguments: &Compared,
        applicable: &[System],
        main: &'static str,
        variant: Option<&'static str>,
    ) -> anyhow::Result<Self> {
        let mut versions = BTreeMap::new();
        for system in applicable {
            let is_peer = PEERS.contains(system);
            if (is_peer && !arguments.peers.contains(system)) || (!is_peer && arguments.only_peers) {
                continue;
            }
            match system.version() {
                Ok(version) => drop(versions.insert(*system, version)),
                Err(error) if !is_peer => return Err(error).context("the bus is not there"),
                Err(error) => report.missing(system.name(), &error)?,
            }
        }
        for (system, version) in &versions {
            report.say(&format!("  {system:<15} {version}"));
        }
        for peer in &arguments.peers {
            if !applicable.contains(peer) {
                report.say(&format!("  {peer:<15} has no answer to this question"));
            }
        }
        let (figures, failures) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { report, arguments: arguments.clone(), main, variant, versions, figures, failures })
    }

    /// Measures every system in turn, for each of these numbers of subscribers, batches and variants.
    pub(crate) async fn run(
        &mut self,
        loads: &[(u64, u64, u64)],
        measure: impl AsyncFn(Case) -> anyhow::Result<Figures>,
    ) -> anyhow::Result<()> {
        let repeat = self.arguments.repeat;
        for (subscribers, batch, variant) in loads.iter().copied() {
            for round in 1..=repeat {
                for system in self.versions.keys().copied() {
                    let case = Case { subscribers, batch, variant, system };
                    match measure(case).await {
                        Ok(figures) => {
                            let main = figures.iter().find(|(name, _)| *name == self.main);
                            let main = main.map_or(f64::NAN, |(_, figure)| *figure);
                            let what = self.variant.map_or(String::new(), |name| format!(", {name} {variant}"));
                            let of = format!("{subscribers} subscribers, batch {batch}{what}");
                            self.report.progress(&format!("{round}/{repeat} {system}, {of}: {} {main:.3}", self.main));
                            self.figures.entry(case).or_default().push(figures);
                        }
                        Err(error) => {
                            self.report.progress(&format!("{round}/{repeat} {system}: {error:#}"));
                            self.failures.entry(case).or_default().push(format!("{error:#}"));
                        }
                    }
                }
            }
            self.show(subscribers, batch, variant)?;
        }
        Ok(())
    }

    /// The median of a figure, if there is one.
    pub(crate) fn median(&self, case: Case, name: &str) -> Option<f64> {
        let rounds = self.figures.get(&case)?;
        let of = |figures: &Figures| figures.iter().find(|(other, _)| *other == name).map(|(_, figure)| *figure);
        let figures: Vec<f64> = rounds.iter().filter_map(of).collect();
        (!figures.is_empty()).then(|| median(figures))
    }

    fn show(&mut self, subscribers: u64, batch: u64, variant: u64) -> anyhow::Result<()> {
        let case = |system| Case { subscribers, batch, variant, system };
        let ours = self.median(case(System::Nimbus), self.main);
        let foreign = self.median(case(System::NimbusForeign), self.main);
        let systems: Vec<System> = self.versions.keys().copied().collect();
        let mut names: Vec<&'static str> = Vec::new();
        for system in &systems {
            for (name, _) in self.figures.get(&case(*system)).and_then(|rounds| rounds.first()).into_iter().flatten() {
                if !names.contains(name) {
                    names.push(name);
                }
            }
        }
        let mut rows = Vec::new();
        for system in systems {
            let mut row: Row = vec![
                ("system", json!(system.name())),
                ("version", json!(self.versions[&system])),
                ("subscribers", json!(subscribers)),
                ("batch", json!(batch)),
            ];
            if let Some(name) = self.variant {
                row.push((name, json!(variant)));
            }
            let figure = |name: &str| self.median(case(system), name);
            row.extend(names.iter().map(|name| (*name, json!(figure(name)))));
            let main = figure(self.main);
            for (column, base) in [("x_nimbus", ours), ("x_nimbus_foreign", foreign)] {
                if base.is_some() {
                    row.push((column, json!(main.zip(base).map(|(figure, base)| figure / base))));
                }
            }
            row.push(("rounds", json!(self.figures.get(&case(system)).map_or(0, Vec::len))));
            row.push(("failed", json!(self.failures.get(&case(system)).map_or(0, Vec::len))));
            rows.push(row);
        }
        self.report.measurements(&rows)?;
        for (case, reasons) in &self.failures {
            if (case.subscribers, case.batch, case.variant) == (subscribers, batch, variant) {
                self.report
                    .say(&format!("  {} failed {} times: {}", case.system, reasons.len(), reasons[0]));
            }
        }
        Ok(())
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds between 0.1 and 600".to_owned()),
    }
}
