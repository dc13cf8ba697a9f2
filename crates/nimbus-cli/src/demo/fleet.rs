//! The agents of the demo, spread over zones.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use nimbus_agent::Handle;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::demo::{
    agent::{self, Table},
    line::Line,
    tap::Traffic,
};

/// Where agents are.
pub(crate) const ZONES: [&str; 3] = ["north", "south", "west"];

/// The agent whose table is too small.
pub(crate) const SMALL: &str = "south-1";

/// So many statements of a policy fit into it.
pub(crate) const SMALL_ROOM: usize = 4;

/// The agent whose line is cut.
pub(crate) const REMOTE: &str = "west-1";

/// More than any policy of the demo has.
const ROOM: usize = 64;

/// All agents, by name.
#[derive(Debug, Default)]
pub(crate) struct Fleet(BTreeMap<String, Member>);

/// One agent that runs.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) line: Line,
    pub(crate) table: Arc<Table>,
    pub(crate) handle: Handle,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

// === impl Fleet ===

impl Fleet {
    /// Starts so many agents. Does not wait for them.
    pub(crate) fn start(&mut self, bus: &str, agents: u32) -> Result<(), String> {
        for number in 0..agents as usize {
            let zone = ZONES[number % ZONES.len()];
            let id = format!("{zone}-{}", number / ZONES.len() + 1);
            let member = Member::start(&id, zone, bus)?;
            self.0.insert(id, member);
        }
        Ok(())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// One of them.
    pub(crate) fn member(&self, id: &str) -> Result<&Member, String> {
        self.0.get(id).ok_or_else(|| format!("there is no agent {id}"))
    }

    /// All of them, each with its name and its zone.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &str, &Member)> {
        let zone = |id: &'_ str| id.rsplit_once('-').map_or("", |(zone, _)| zone).len();
        self.0.iter().map(move |(id, member)| (id.as_str(), &id[..zone(id)], member))
    }

    /// All that has come down to all of them.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut all = Traffic::default();
        self.0.values().for_each(|member| all += member.line.traffic());
        all
    }

    /// Stops all of them; who has not ended by then is ended.
    pub(crate) async fn stop(&mut self, within: Duration) {
        let (stops, tasks): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.0).into_values().map(|member| (member.stop, member.task)).unzip();
        // They end when nobody holds these any more.
        drop(stops);
        let deadline = tokio::time::Instant::now() + within;
        for mut task in tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

// === impl Member ===

impl Member {
    /// Starts an agent. Does not wait for it.
    pub(crate) fn start(id: &str, zone: &str, bus: &str) -> Result<Self, String> {
        let (line, table) = (Line::default(), Table::with_room_for(if id == SMALL { SMALL_ROOM } else { ROOM }));
        let agent = agent::agent(id, zone, bus, &table, line.clone()).map_err(|error| error.to_string())?;
        let handle = agent.handle();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            if let Err(error) = agent.run_until(async { drop(stopped.await) }).await {
                tracing::error!(%error, "an agent of the demo has ended");
            }
        });
        Ok(Self { line, table, handle, stop, task })
    }

    /// Stops it for good: the bus forgets it.
    pub(crate) async fn leave(self) {
        // An error means that it has stopped already.
        let _ = self.handle.leave().await;
        drop(self.stop);
        drop(self.task.await);
    }
}
