//! Agents for the commands that ask about them: `sim-agent` as a process.

use std::process::{Child, Command, Stdio};

use nimbus_wire::v1::{self, fleet_client::FleetClient};

use crate::{cli::World, demo, file_agent::ask, server::program};

/// Agents in a process, which end with this value as if they were killed.
pub(super) struct Sim(Child);

// === impl Sim ===

impl Sim {
    /// Agents that are subscribed to policies.
    pub(super) fn start(world: &World, flags: &[&str]) -> Self {
        let process = Command::new(program("sim-agent", "sim-agent"))
            .args(["--bus", &world.server.url(), "--kind", demo::KIND])
            .args(flags)
            .env("NIMBUS_LOG", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Self(process.unwrap())
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // Both fail only if the process has ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

// === impl World ===

impl World {
    /// Waits until all agents together are like this.
    pub(super) async fn agents(&self, what: &str, are: impl Fn(&[v1::AgentInfo]) -> bool) {
        let mut fleet = FleetClient::connect(self.server.url()).await.unwrap();
        ask(what, async || {
            let agents = fleet.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
            are(&agents).then_some(())
        })
        .await;
    }

    /// Waits until there are this many agents, and each has said what there is to say about everything.
    pub(super) async fn settled(&self, count: usize) {
        let done = |agent: &v1::AgentInfo| agent.last_relevant > 0 && agent.applied >= agent.last_relevant;
        self.agents("agents that are done", |agents| agents.len() == count && agents.iter().all(done))
            .await;
    }

    /// It succeeds, and prints exactly this, but for times and the width of columns that have times in them.
    pub(super) fn prints_timeless(&self, arguments: &[&str], out: &str) {
        let ended = self.run(arguments);
        assert_eq!((ended.code, &*ended.err), (0, ""), "{arguments:?}");
        assert_eq!(timeless(&ended.out), out, "{arguments:?} prints\n{}", ended.out);
    }
}

/// A text without what is never the same: times are `T`, and wide gaps are narrow ones.
pub(super) fn timeless(text: &str) -> String {
    let mut words = Vec::new();
    for line in text.split('\n') {
        let cells = line.trim_start().split("   ").map(str::trim).filter(|cell| !cell.is_empty());
        let cells: Vec<String> = cells
            .map(|cell| cell.split(' ').map(without_time).collect::<Vec<_>>().join(" "))
            .collect();
        let indent = line.len() - line.trim_start().len();
        words.push(format!("{:indent$}{}", "", cells.join("   ")));
    }
    words.join("\n")
}

fn without_time(word: &str) -> String {
    let time = word.trim_end_matches(',');
    let number = ["ms", "s", "m", "h"].iter().find_map(|unit| time.strip_suffix(unit));
    match number.filter(|number| number.parse::<f64>().is_ok()) {
        Some(_) => format!("T{}", &word[time.len()..]),
        None => word.to_owned(),
    }
}
