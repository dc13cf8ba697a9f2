//! The order in which agents changed, and the order in which those who are away are lost and forgotten.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use nimbus_core::AgentId;
use tokio::time::{Duration, Instant};

use crate::fleet::agent::Agent;

/// The order in which agents changed. Whoever follows it remembers a version, and nothing else: an agent stands only at
/// its last change.
#[derive(Debug, Default)]
pub(crate) struct Order {
    version: u64,
    changed: BTreeMap<u64, Arc<Agent>>,
    /// Agents that were forgotten, the latest ones.
    removed: BTreeMap<u64, AgentId>,
    removals: HashMap<AgentId, u64>,
    /// Who is behind this version may have missed that an agent was forgotten.
    horizon: u64,
    /// Since when they are away.
    away: BTreeSet<(Instant, AgentId)>,
    /// The same, of those who are lost.
    lost: BTreeSet<(Instant, AgentId)>,
    /// Those of them whose reports take memory.
    burdens: BTreeSet<(Instant, AgentId)>,
}

/// What follows a version.
#[derive(Debug)]
pub(crate) enum Change {
    Agent(Arc<Agent>),
    Removed(AgentId),
}

/// The changes after a version, up to another one.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) list: Vec<Change>,
    pub(crate) to: u64,
}

/// Agents are forgotten after a day, or when they leave. A watcher that is further behind has stalled, and starts again.
const REMOVALS: usize = 4_096;

// === impl Order ===

impl Order {
    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Puts an agent last, which stood at `old`.
    pub(crate) fn bump(&mut self, agent: &Arc<Agent>, old: u64) -> u64 {
        self.changed.remove(&old);
        self.version += 1;
        self.changed.insert(self.version, agent.clone());
        self.version
    }

    /// Puts an agent last that was not there.
    pub(crate) fn add(&mut self, agent: &Arc<Agent>) -> u64 {
        if let Some(at) = self.removals.remove(&agent.id) {
            self.removed.remove(&at);
        }
        self.bump(agent, 0)
    }

    /// Takes an agent out, which stood at `old`.
    pub(crate) fn remove(&mut self, id: &AgentId, old: u64) {
        self.changed.remove(&old);
        self.version += 1;
        self.removed.insert(self.version, id.clone());
        self.removals.insert(id.clone(), self.version);
        if self.removed.len() > REMOVALS
            && let Some((version, oldest)) = self.removed.pop_first()
        {
            self.removals.remove(&oldest);
            self.horizon = version;
        }
    }

    /// At most `max` changes after a version. `None`: something is missing there, start again.
    pub(crate) fn after(&self, version: u64, max: usize) -> Option<Changes> {
        if version < self.horizon {
            return None;
        }
        let from = version + 1;
        let agents = self
            .changed
            .range(from..)
            .take(max)
            .map(|(at, agent)| (*at, Change::Agent(agent.clone())));
        let removed = self.removed.range(from..).take(max).map(|(at, id)| (*at, Change::Removed(id.clone())));
        let mut all: Vec<_> = agents.chain(removed).collect();
        all.sort_by_key(|(at, _)| *at);
        all.truncate(max);
        // If all of them are here, there is nothing up to the newest version.
        let to = if all.len() < max { self.version } else { all.last().map_or(self.version, |(at, _)| *at) };
        Some(Changes { list: all.into_iter().map(|(_, change)| change).collect(), to })
    }

    /// An agent's session ended.
    pub(crate) fn leave(&mut self, id: &AgentId, since: Instant) {
        self.away.insert((since, id.clone()));
    }

    /// An agent that was away is back, or forgotten.
    pub(crate) fn settle(&mut self, id: &AgentId, since: Instant) {
        let place = (since, id.clone());
        if !self.away.remove(&place) {
            self.lost.remove(&place);
            self.burdens.remove(&place);
        }
    }

    /// An agent that was away is lost; its reports may be a burden. `false` if it was not away.
    pub(crate) fn lose(&mut self, id: &AgentId, since: Instant, burden: bool) -> bool {
        let place = (since, id.clone());
        let was_away = self.away.remove(&place);
        if was_away && burden {
            self.burdens.insert(place.clone());
        }
        if was_away {
            self.lost.insert(place);
        }
        was_away
    }

    /// Who has been away for so long, and is not lost yet.
    pub(crate) fn first_away(&self, now: Instant, lost_after: Duration) -> Option<(Instant, AgentId)> {
        self.away.first().filter(|(since, _)| *since + lost_after <= now).cloned()
    }

    /// Who has been lost for so long.
    pub(crate) fn first_lost(&self, now: Instant, forget_after: Duration) -> Option<(Instant, AgentId)> {
        self.lost.first().filter(|(since, _)| *since + forget_after <= now).cloned()
    }

    /// Who is missed least: the longest lost, or away.
    pub(crate) fn dispensable(&self) -> Option<(Instant, AgentId)> {
        self.lost.first().or_else(|| self.away.first()).cloned()
    }

    /// Who has been lost for longest of those whose reports take memory.
    pub(crate) fn first_burden(&self) -> Option<(Instant, AgentId)> {
        self.burdens.first().cloned()
    }

    /// When the next agent is lost or forgotten.
    pub(crate) fn deadline(&self, lost_after: Duration, forget_after: Duration) -> Option<Instant> {
        let lost = self.away.first().map(|(since, _)| *since + lost_after);
        let forgotten = self.lost.first().map(|(since, _)| *since + forget_after);
        lost.into_iter().chain(forgotten).min()
    }

    /// How many are connected, away and lost.
    pub(crate) fn census(&self) -> [usize; 3] {
        let (away, lost) = (self.away.len(), self.lost.len());
        [self.changed.len() - away - lost, away, lost]
    }
}
