//! What the program says: tables for people, lines of JSON for programs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one place where results are printed")]

use std::{fs::File, io::Write as _, path::Path, process::Command, process::ExitCode};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::server::Server;

/// The results of one run.
#[derive(Debug)]
pub(crate) struct Report {
    /// What every line of JSON begins with.
    machine: Row,
    json: Option<File>,
    violations: usize,
}

/// Named figures.
pub(crate) type Row = Vec<(&'static str, Value)>;

// === impl Report ===

impl Report {
    /// Says what is measured, and on what.
    pub(crate) fn begin(bench: &'static str, json: Option<&Path>) -> anyhow::Result<Self> {
        let path = Server::path()?;
        let hint = || format!("cannot run {} (hint: cargo build --release -p nimbus-cli)", path.display());
        let version = Command::new(&path).arg("--version").output().with_context(hint)?.stdout;
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        let cores = std::thread::available_parallelism()?.get();
        let first_line = |path| Ok::<_, std::io::Error>(std::fs::read_to_string(path)?.trim().to_owned());
        let (kernel, load) = (first_line("/proc/sys/kernel/osrelease")?, first_line("/proc/loadavg")?);
        println!("{bench}: {version}, {build} build, {cores} cores, Linux {kernel}, load {load}");
        let json = json.map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display())));
        let machine = vec![
            ("bench", json!(bench)),
            ("version", json!(version)),
            ("build", json!(build)),
            ("cores", json!(cores)),
            ("kernel", json!(kernel)),
            ("load", json!(load)),
        ];
        Ok(Self { machine, json: json.transpose()?, violations: 0 })
    }

    /// Says how far a long run is.
    pub(crate) fn progress(&self, text: &str) {
        eprintln!("  {text}");
    }

    /// Says something that is no figure.
    pub(crate) fn say(&self, text: &str) {
        println!("{text}");
    }

    /// Says that a system is not there to be measured.
    pub(crate) fn missing(&mut self, system: &str, why: &anyhow::Error) -> anyhow::Result<()> {
        println!("  {system:<15} MISSING: {why:#} (hint: crates/nimbus-bench/peers installs it)");
        self.write_measurement(&vec![("system", json!(system)), ("missing", json!(true))])
    }

    /// Prints rows that have the same columns, without the versions, which were printed before; in JSON, each is a
    /// measurement with its own version, and without figures that it does not have.
    pub(crate) fn measurements(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        let shown: Vec<Row> = rows
            .iter()
            .map(|row| row.iter().filter(|(name, _)| *name != "version").cloned().collect())
            .collect();
        print(&shown);
        rows.iter().try_for_each(|row| self.write_measurement(row))
    }

    fn write_measurement(&mut self, row: &Row) -> anyhow::Result<()> {
        let Some(file) = &mut self.json else { return Ok(()) };
        let machine = self.machine.iter().filter(|(name, _)| *name != "version");
        let (bench, machine): (Vec<_>, Vec<_>) = machine.partition(|(name, _)| *name == "bench");
        let fields = bench.into_iter().chain(row).chain(machine).filter(|(_, value)| !value.is_null());
        writeln!(file, "{}", Value::Object(fields.map(|(name, value)| ((*name).to_owned(), value.clone())).collect()))?;
        Ok(())
    }

    /// Prints rows that have the same columns.
    pub(crate) fn table(&mut self, rows: &[Row]) -> anyhow::Result<()> {
        print(rows);
        for row in rows {
            self.write(row)?;
        }
        Ok(())
    }

    /// States what was checked on the way: a run that found otherwise has ended with an error before it gets here.
    pub(crate) fn checked(&mut self, what: &str) -> anyhow::Result<()> {
        self.must(true, what)
    }

    /// States what must hold, and whether it does.
    pub(crate) fn must(&mut self, holds: bool, what: &str) -> anyhow::Result<()> {
        println!("{} {what}", if holds { "ok  " } else { "FAIL" });
        self.violations += usize::from(!holds);
        self.write(&vec![("must", json!(what)), ("holds", json!(holds))])
    }

    /// Fails if something that must hold does not.
    pub(crate) fn finish(self) -> anyhow::Result<ExitCode> {
        if let Some(file) = self.json {
            file.sync_all()?;
        }
        Ok(if self.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn write(&mut self, row: &Row) -> anyhow::Result<()> {
        let Some(file) = &mut self.json else { return Ok(()) };
        let fields = self.machine.iter().chain(row).map(|(name, value)| ((*name).to_owned(), value.clone()));
        writeln!(file, "{}", Value::Object(fields.collect::<Map<_, _>>()))?;
        Ok(())
    }
}

fn print(rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    let names = first.iter().map(|(name, _)| (*name).to_owned()).collect();
    let figures = |row: &Row| row.iter().map(|(_, value)| text(value)).collect();
    let lines: Vec<Vec<String>> = std::iter::once(names).chain(rows.iter().map(figures)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..first.len()).map(width).collect();
    println!();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
    println!();
}

/// The middle of some figures.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    percentile(figures, 50)
}

/// The figure that so many in a hundred are below.
pub(crate) fn percentile(figures: impl IntoIterator<Item = f64>, percent: usize) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() * percent / 100).copied().unwrap_or(f64::NAN)
}

/// Says why there are no results.
pub(crate) fn complain(error: &anyhow::Error) {
    eprintln!("nimbus-bench: {error:#}");
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => decimal(number.as_f64().unwrap_or(f64::NAN)),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// Three digits at least, so that small figures can be compared.
fn decimal(number: f64) -> String {
    match number.abs() {
        small if small < 1.0 && small > 0.0 => format!("{number:.4}"),
        large if large >= 10_000.0 => format!("{number:.0}"),
        _ => format!("{number:.2}"),
    }
}
