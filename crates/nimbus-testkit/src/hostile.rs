//! `nimbus-testkit hostile`: a bus is attacked in many ways, must stay small, and must serve those who are honest.
//!
//! The bus is the real command in a process of its own, with its default limits, and so are those who attack it. Honest clients
//! publish, subscribe, report, come and go all the time, before, during and after each attack. The bus may not take more memory than
//! the attack's bound, and the honest may notice nothing but that it is busy. An attack that did not reach its numbers proves nothing,
//! and is not held.

mod attackers;
mod beat;
mod honest;
mod memory;
mod sorts;
mod verdict;
mod wire;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use nimbus_client::allow_open_files;
use tempfile::TempDir;
use tokio::time::sleep;

pub(crate) use self::attackers::{Arguments as Attack, run as attack};
use self::{
    honest::Honest,
    memory::Memory,
    sorts::{SORTS, Sort},
    verdict::{Bounds, Outcome, Report},
};
use crate::daemon::{Daemon, Program};

/// Attacks a bus in many ways, and proves that it stays small and serves those who are honest.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How long each attack goes on.
    #[arg(long, default_value_t = 10.0, value_name = "N", value_parser = parse_seconds)]
    seconds: f64,

    /// Only the attack of this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Write all figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Connections that are held at once, where many are; each takes a file descriptor on both sides.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    connections: usize,

    /// How many times longer than before the slowest hundredth of changes may take during an attack; 0 does not judge it.
    #[arg(long, default_value_t = 200.0, value_name = "N")]
    max_slowdown: f64,

    /// Do not judge whether attacks reach their numbers, as they cannot in a moment on a slow machine; those that do not are `weak`.
    #[arg(long)]
    any_volume: bool,

    /// The command to test; by default the one beside this program.
    #[arg(long, value_name = "PATH")]
    nimbus: Option<PathBuf>,
}

/// A bus, and those who are honest to it.
struct Scene {
    daemon: Daemon,
    address: std::net::SocketAddr,
    honest: Honest,
    memory: Memory,
}

/// Beside the connections: those of the honest, and what programs have open anyway.
const OTHER_FILES: u64 = 200;

/// So that those who have everything soon know it.
const BOOKMARK_SECONDS: &str = "0.2";

/// What the bus took for an attack may be given back a moment later; this is for the honest.
const REST: Duration = Duration::from_millis(200);

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let chosen: Vec<&Sort> = SORTS
        .iter()
        .filter(|sort| arguments.only.as_deref().is_none_or(|name| name == sort.name))
        .collect();
    let names = SORTS.map(|sort| sort.name).join(", ");
    ensure!(!chosen.is_empty(), "there is no such attack (hint: there are {names})");
    let files = arguments.connections as u64 + OTHER_FILES;
    if let Some(allowed) = allow_open_files().filter(|allowed| *allowed < files) {
        let hint = format!("hint: ulimit -n {files}, or --connections {}", allowed.saturating_sub(OTHER_FILES));
        bail!("{} connections need {files} open files, and {allowed} are allowed here ({hint})", arguments.connections);
    }
    let directory = TempDir::with_prefix("nimbus-hostile-")?;
    let program = Program::find(arguments.nimbus.as_deref(), directory.path())?;
    let bounds = Bounds { max_slowdown: arguments.max_slowdown, any_volume: arguments.any_volume };
    let mut report = Report::begin(arguments.seconds, arguments.connections);
    for sort in chosen {
        // Each has a bus of its own, so that what one leaves behind is not the next one's.
        let scene = Scene::begin(&program).await?;
        let outcome = scene
            .play(sort, arguments)
            .await
            .with_context(|| format!("{}: {}", sort.name, program.last_words()))?;
        report.add(&outcome, &bounds);
    }
    if let Some(path) = &arguments.json {
        report.save(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if report.finish() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected seconds between 0.1 and 3600".to_owned()),
    }
}

// === impl Scene ===

impl Scene {
    async fn begin(program: &Program) -> anyhow::Result<Self> {
        let mut daemon = program.spawn_with(&["--store", "memory", "--bookmark-interval", BOOKMARK_SECONDS])?;
        let address = daemon.address().await.context("the bus does not start")?;
        let memory = Memory::of(daemon.pid().context("the bus has ended")?);
        let honest = Honest::start(address).await?;
        Ok(Self { daemon, address, honest, memory })
    }

    /// Before, during and after.
    async fn play(mut self, sort: &Sort, arguments: &Arguments) -> anyhow::Result<Outcome> {
        let time = Duration::from_secs_f64(arguments.seconds);
        // What is there when the honest begin is theirs.
        let warm = self.honest.in_sync().await;
        self.honest.seen();
        sleep(time / 2).await;
        let before = self.honest.seen();
        let rss_before = self.memory.begin()?;
        let volume = attackers::attack(sort, self.address, time, arguments.connections, self.honest.session()).await?;
        let during_sync = self.honest.in_sync().await;
        let during = self.honest.seen();
        let rss_peak = self.memory.peak()?;
        sleep(REST).await;
        self.honest.seen();
        sleep(time / 2).await;
        let after_sync = self.honest.in_sync().await;
        let after = self.honest.seen();
        let failures = [warm, during_sync, after_sync].into_iter().filter_map(Result::err).collect();
        let rss_after = self.memory.now()?;
        let alive = self.daemon.is_alive()?;
        Ok(Outcome {
            name: sort.name,
            what: sort.what,
            unit: sort.unit,
            bound_kib: sort.bound(arguments.connections),
            least: sort.least(arguments.connections),
            rss_before_kib: rss_before,
            rss_peak_kib: rss_peak,
            rss_after_kib: rss_after,
            volume,
            before,
            during,
            after,
            failures,
            alive,
        })
    }
}
