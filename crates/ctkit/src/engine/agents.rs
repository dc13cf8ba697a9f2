//! What agents have said, and what of it is new.

use std::collections::{BTreeMap, HashMap, HashSet};

use nimbus_core::{AgentId, KeySet, ObjectKey, Revision};
use nimbus_wire::v1;
use prost_types::Any;

use crate::report::{AgentNews, Presence};

/// What agents have said, and what of it is new.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    known: HashMap<AgentId, Agent>,
    /// Not named since the bus began to tell everything.
    unconfirmed: HashSet<AgentId>,
    /// The newest revision that one of them has applied.
    newest: Revision,
}

#[derive(Debug)]
struct Agent {
    presence: Presence,
    applied: Revision,
    exceptions: BTreeMap<ObjectKey, v1::Exception>,
    statuses: BTreeMap<ObjectKey, Any>,
}

/// What a report has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Whose.
    pub(crate) agent: Option<AgentId>,
    /// Objects that it says something else about than before.
    pub(crate) objects: KeySet,
    /// It has applied everything between these, but for what is in its exceptions.
    pub(crate) applied: Option<(Revision, Revision)>,
    /// It was lost, or has come back: that concerns everything.
    pub(crate) presence: bool,
    /// Nobody knew of it.
    pub(crate) is_new: bool,
}

// === impl Agents ===

impl Agents {
    /// The bus begins to tell everything that it knows.
    pub(crate) fn begin(&mut self) {
        self.unconfirmed = self.known.keys().cloned().collect();
    }

    /// It has told everything. Who was not named is not known there, which is no news of the agent: a bus that has been
    /// restarted knows nobody yet. Says whether there is such a one.
    pub(crate) fn end(&mut self) -> bool {
        let gone = std::mem::take(&mut self.unconfirmed);
        self.known.retain(|agent, _| !gone.contains(agent));
        !gone.is_empty()
    }

    /// The bus is another one, which counts from elsewhere: nobody has applied anything of it, as far as is known.
    pub(crate) fn begin_at_zero(&mut self) {
        self.newest = Revision::ZERO;
        self.known.values_mut().for_each(|agent| agent.applied = Revision::ZERO);
    }

    /// Takes a report, and says what is new in it.
    pub(crate) fn report(&mut self, report: v1::AgentReport) -> News {
        let Some(info) = report.agent else { return News::default() };
        let Ok(id) = AgentId::new(&info.agent) else { return News::default() };
        self.unconfirmed.remove(&id);
        let presence = match info.state() {
            v1::AgentState::Lost => Presence::Lost,
            _ => Presence::Present,
        };
        let exceptions: BTreeMap<ObjectKey, v1::Exception> = info
            .exceptions
            .into_iter()
            .filter_map(|exception| Some((key(exception.key.as_ref())?, exception)))
            .collect();
        let applied = Revision(info.applied);
        let is_new = !self.known.contains_key(&id);
        let agent = self.known.entry(id.clone()).or_insert_with(|| Agent {
            presence,
            applied: Revision::ZERO,
            exceptions: BTreeMap::new(),
            statuses: BTreeMap::new(),
        });
        let mut news = News { agent: Some(id), presence: agent.presence != presence, is_new, ..News::default() };
        let differs = |key: &&ObjectKey| {
            let (old, new) = (agent.exceptions.get(*key), exceptions.get(*key));
            old.map(told) != new.map(told)
        };
        news.objects
            .extend(agent.exceptions.keys().chain(exceptions.keys()).filter(differs).cloned());
        for status in report.statuses {
            let Some(object) = key(status.key.as_ref()) else { continue };
            match status.status {
                Some(status) => drop(agent.statuses.insert(object.clone(), status)),
                None => drop(agent.statuses.remove(&object)),
            }
            news.objects.insert(object);
        }
        news.applied = (applied != agent.applied).then_some((agent.applied.min(applied), agent.applied.max(applied)));
        (agent.presence, agent.applied, agent.exceptions) = (presence, applied, exceptions);
        self.newest = self.newest.max(applied);
        news
    }

    /// The agent is no longer remembered.
    pub(crate) fn forget(&mut self, agent: &AgentId) -> News {
        let presence = self.known.remove(agent).is_some();
        News { agent: Some(agent.clone()), presence, ..News::default() }
    }

    /// Whether one of them may have applied this already.
    pub(crate) fn may_have(&self, revision: Revision) -> bool {
        self.newest >= revision
    }

    /// Up to here, every agent that is there has applied everything, but for its exceptions.
    pub(crate) fn low_water(&self) -> Option<Revision> {
        let there = self.known.values().filter(|agent| agent.presence == Presence::Present);
        there.map(|agent| agent.applied).min()
    }

    /// What an agent says about some objects.
    pub(crate) fn about(&self, id: &AgentId, objects: &[ObjectKey]) -> AgentNews {
        let Some(agent) = self.known.get(id) else {
            let (exceptions, statuses) = (Vec::new(), BTreeMap::new());
            return AgentNews { agent: id.clone(), presence: Presence::Forgotten, exceptions, statuses };
        };
        AgentNews {
            agent: id.clone(),
            presence: agent.presence,
            exceptions: objects.iter().filter_map(|key| agent.exceptions.get(key)).cloned().collect(),
            statuses: (objects.iter())
                .filter_map(|key| Some((key.clone(), agent.statuses.get(key)?.clone())))
                .collect(),
        }
    }
}

fn key(key: Option<&v1::Key>) -> Option<ObjectKey> {
    ObjectKey::try_from(key?).ok()
}

/// What is worth telling of an exception: not how old it is by now, nor how often it was tried.
fn told(exception: &v1::Exception) -> (u64, i32, &str, &str) {
    (exception.generation, exception.phase, &exception.code, &exception.message)
}
