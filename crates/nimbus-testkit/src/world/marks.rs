//! By what one sees that something has happened.

use ctkit::{Entry, Waiting};
use nimbus_agent::{AgentStatus, Link as AgentLink};
use nimbus_core::{Epoch, Position, Revision};

use crate::{agent::Agent, world::World};

/// Whatever changes when something happens.
#[derive(Debug, PartialEq)]
pub(crate) struct Marks {
    api: Revision,
    bus: (Epoch, Revision),
    agents: Vec<Option<AgentMarks>>,
    /// What is going on, and will end by itself.
    pub(crate) busy: Option<String>,
}

/// The same of an agent: how it is doing, but for what changes with time alone.
#[derive(Debug, PartialEq)]
struct AgentMarks {
    link: AgentLink,
    position: Option<Position>,
    counts: [usize; 4],
}

// === impl World ===

impl World {
    pub(crate) async fn marks(&self) -> Marks {
        let agents = self.agents.lock().clone();
        let busy = match self.is_at_work().await {
            Some(work) => Some(work),
            None => agents.iter().find_map(is_at_work),
        };
        let state = self.serving.bus.store().state();
        Marks {
            api: self.api.snapshot().revision(),
            bus: (state.epoch(), state.head()),
            agents: agents.iter().map(|agent| agent.status().map(AgentMarks::from)).collect(),
            busy,
        }
    }

    /// What controllers do. Those that cannot get through are at nothing that would end by itself.
    async fn is_at_work(&self) -> Option<String> {
        if !self.link.reaches() || self.source.is_down() || self.target.is_down() {
            return None;
        }
        if let Some(missing) = self.missing() {
            return Some(missing);
        }
        let entries = self.entries().await;
        let is_going_on = |entry: &&Entry| matches!(entry.state, Waiting::Ready | Waiting::Running | Waiting::Held);
        if let Some(entry) = entries.iter().find(is_going_on) {
            return Some(format!("{} is busy with {}", entry.controller, entry.object));
        }
        if self.has_written().await {
            return None;
        }
        Some("a controller has something to write".to_owned())
    }
}

fn is_at_work(agent: &Agent) -> Option<String> {
    let (id, status) = (agent.id(), agent.status()?);
    if agent.is_waited_for() && status.running > 0 {
        return Some(format!("handlers of {id} run"));
    }
    let is_coming = matches!(status.link, AgentLink::Connecting | AgentLink::Detached | AgentLink::Syncing);
    (is_coming && agent.link().reaches()).then(|| format!("{id} is {:?}", status.link))
}

// === impl AgentMarks ===

impl From<AgentStatus> for AgentMarks {
    fn from(status: AgentStatus) -> Self {
        let counts = [status.objects, status.unfinished, status.failed, status.running];
        Self { link: status.link, position: status.position, counts }
    }
}
