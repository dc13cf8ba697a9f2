//! Real agents, thousands of them in one process of their own.

use std::{net::SocketAddr, path::PathBuf, process::Stdio};

use anyhow::{Context as _, anyhow};
use tokio::process::{Child, Command};

use crate::{objects::KIND, usage::Usage};

/// The program `sim-agent`: agents of the agent library that apply everything at once. It dies with this value.
#[derive(Debug)]
pub(crate) struct Simulation(Child);

// === impl Simulation ===

impl Simulation {
    /// Starts as many agents, `ramp` of them per second.
    pub(crate) fn start(bus: SocketAddr, agents: u64, ramp: u64) -> anyhow::Result<Self> {
        let path = Self::path()?;
        let process = Command::new(&path)
            .args(["--bus", &format!("http://{bus}"), "--kind", KIND])
            .args(["--agents", &agents.to_string(), "--ramp", &ramp.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {} (hint: cargo build --release -p sim-agent)", path.display()))?;
        Ok(Self(process))
    }

    /// The program that is used: the one beside this program.
    fn path() -> anyhow::Result<PathBuf> {
        Ok(std::env::current_exe()?.with_file_name("sim-agent"))
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.0.id().context("sim-agent has ended")?)
    }

    /// Does something that needs the agents, and fails if they end before it is done.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        tokio::select! {
            done = work => done,
            ended = self.0.wait() => Err(anyhow!("sim-agent ended early: {}", ended?)),
        }
    }
}
