//! What others can ask of a running agent.

use std::time::Duration;

use nimbus_core::{Labels, ObjectKey, Position};
use tokio::sync::{mpsc, oneshot, watch};

/// What others can ask of a running agent. Cheap to clone; the agent does not stop when it is dropped.
#[derive(Debug, Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    status: watch::Receiver<AgentStatus>,
}

/// How an agent is doing.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct AgentStatus {
    /// How it stands with the bus.
    pub link: Link,
    /// Where what it should have is exactly what the bus had.
    pub position: Option<Position>,
    /// Objects that it should have.
    pub objects: usize,
    /// Objects that are not as they should be.
    pub unfinished: usize,
    /// Of those, objects whose last attempt failed.
    pub failed: usize,
    /// Handlers that run.
    pub running: usize,
    /// Times that the bus held something else than this agent.
    pub mismatches: u64,
    /// Why its disk refuses what should survive a restart.
    pub cache_failing: Option<String>,
    /// Publishers, and for how long each had been silent when the bus last said so.
    pub publishers: Vec<(String, Duration)>,
}

/// How an agent stands with the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Link {
    /// It has not found one yet, and does nothing until it has, or has waited long enough.
    #[default]
    Connecting,
    /// There is none; it keeps what it has as it should be.
    Detached,
    /// It is subscribed, and has not got everything yet.
    Syncing,
    /// The bus is being refilled; it keeps what it has as it should be.
    Waiting,
    /// It has everything that the bus has for it.
    InSync,
}

/// How it stands with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// One sentence.
    pub sentence: String,
    /// For how long.
    pub since: Duration,
    /// What it waits for, and what that waits for in turn.
    pub chain: Vec<ObjectKey>,
}

/// The agent has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent has stopped")]
pub struct Stopped;

#[derive(Debug)]
pub(crate) enum Command {
    Explain(ObjectKey, oneshot::Sender<Option<Explanation>>),
    SetLabels(Labels),
    Leave,
}

/// Questions are rare; whoever asks when it is full waits.
const COMMANDS: usize = 16;

pub(crate) fn channel() -> (Handle, mpsc::Receiver<Command>, watch::Sender<AgentStatus>) {
    let (commands, receiver) = mpsc::channel(COMMANDS);
    let (sender, status) = watch::channel(AgentStatus::default());
    (Handle { commands, status }, receiver, sender)
}

// === impl Handle ===

impl Handle {
    /// How the agent is doing.
    pub fn status(&self) -> AgentStatus {
        self.status.borrow().clone()
    }

    /// Waits until the agent is as `wanted`.
    ///
    /// # Errors
    /// If it stops before.
    pub async fn wait_until(&mut self, wanted: impl FnMut(&AgentStatus) -> bool) -> Result<AgentStatus, Stopped> {
        self.status.wait_for(wanted).await.map(|status| status.clone()).map_err(|_| Stopped)
    }

    /// How it stands with an object, and why; `None` if the agent does not know it.
    ///
    /// # Errors
    /// If the agent has stopped.
    pub async fn explain(&self, key: ObjectKey) -> Result<Option<Explanation>, Stopped> {
        let (answer, explanation) = oneshot::channel();
        self.commands.send(Command::Explain(key, answer)).await.map_err(|_| Stopped)?;
        explanation.await.map_err(|_| Stopped)
    }

    /// Changes the labels of the agent, and with them what is for it.
    ///
    /// # Errors
    /// If the agent has stopped.
    pub async fn set_labels(&self, labels: Labels) -> Result<(), Stopped> {
        self.commands.send(Command::SetLabels(labels)).await.map_err(|_| Stopped)
    }

    /// Tells the bus to forget this agent when it stops: it does not come back.
    ///
    /// # Errors
    /// If the agent has stopped.
    pub async fn leave(&self) -> Result<(), Stopped> {
        self.commands.send(Command::Leave).await.map_err(|_| Stopped)
    }
}
