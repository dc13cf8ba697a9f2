//! What agents say about what was published for an object.

use std::{collections::BTreeMap, sync::Arc};

use nimbus_core::{AgentId, Object, ObjectKey, Spec};
use nimbus_wire::v1;

use crate::typed::unpack;

/// What agents say about what was published for an object: how far it has come, and who has something new to say.
///
/// Several reports that come before a reactor could look are one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentReport<K> {
    /// The object on whose behalf it was published.
    pub object: Arc<Object<K>>,
    /// How far all that was published for it has come.
    pub propagation: Propagation,
    /// Agents with something new to say. There may be none, if only their number is another one: agents that have just come
    /// are counted together, a moment later.
    pub agents: Vec<AgentNews>,
}

/// How far what was published for an object has come; an agent that has one part of it and lacks another is pending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Propagation {
    /// Pairs of an object that was published and an agent that it is for and that counts.
    pub agents: u32,
    /// Of those, where it is applied.
    pub applied: u32,
    /// Where it failed.
    pub failed: u32,
    /// Where it is neither.
    pub pending: u32,
    /// Where it is applied, but not as well as it should be.
    pub degraded: u32,
    /// Agents that do not count: lost, never seen, or not subscribed.
    pub excluded: u32,
    /// Why, where it failed. Some of them, if there are many.
    pub failures: Vec<AgentFailure>,
}

/// Why an agent could not apply an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFailure {
    /// Which agent.
    pub agent: String,
    /// What was published.
    pub object: String,
    /// A word that dashboards can count.
    pub code: String,
    /// For people.
    pub message: String,
}

/// What is new of one agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentNews {
    /// Which agent.
    pub agent: AgentId,
    /// Whether it is there.
    pub presence: Presence,
    /// What it could not do, of all that was published for the object.
    pub exceptions: Vec<v1::Exception>,
    /// What it says of each object beyond that.
    pub statuses: BTreeMap<ObjectKey, prost_types::Any>,
}

/// Whether an agent is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Presence {
    /// It has a session, or had one a moment ago.
    Present,
    /// It has been away for so long that nobody waits for it.
    Lost,
    /// It is no longer remembered.
    Forgotten,
}

/// The same as the engine collects it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    pub(crate) propagation: Propagation,
    pub(crate) agents: Vec<AgentNews>,
}

// === impl AgentReport ===

impl<K> AgentReport<K> {
    pub(crate) fn new(object: Arc<Object<K>>, heard: Heard) -> Self {
        Self { object, propagation: heard.propagation, agents: heard.agents }
    }
}

// === impl Propagation ===

impl Propagation {
    /// Whether every agent that counts has applied all of it.
    pub fn is_complete(&self) -> bool {
        self.applied == self.agents
    }

    /// Adds how far one more of the objects has come.
    pub fn add(&mut self, object: &ObjectKey, of: &v1::Propagation) {
        self.agents += of.agents;
        self.applied += of.applied;
        self.failed += of.failed;
        self.pending += of.pending;
        self.degraded += of.degraded;
        self.excluded += of.excluded.iter().map(|exclusion| exclusion.count).sum::<u32>();
        self.failures.extend(of.failures.iter().map(|failure| {
            let exception = failure.exception.clone().unwrap_or_default();
            AgentFailure {
                agent: failure.agent.clone(),
                object: object.to_string(),
                code: exception.code,
                message: exception.message,
            }
        }));
    }
}

// === impl AgentNews ===

impl AgentNews {
    /// What the agent says of an object, if it is a message of type `S`.
    pub fn status<S: Spec>(&self, object: &ObjectKey) -> Option<S> {
        unpack(self.statuses.get(object)?)?.ok()
    }
}
