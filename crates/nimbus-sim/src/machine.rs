//! What an agent's handlers have made of a machine, and what they must never be asked to do.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_agent::Reason;

use crate::{
    model::{Key, Model, Viewer},
    policies::Rule,
    setup::AgentSetup,
    world::Phase,
};

/// A machine with an agent.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) kinds: Vec<&'static str>,
    /// Every zone that it ever was in; the last one counts.
    pub(crate) zones: Vec<&'static str>,
    /// What was applied outlives the agent, and the agent knows it.
    pub(crate) trust: bool,
    things: BTreeMap<Key, Thing>,
    busy: BTreeMap<Key, &'static str>,
    /// The newest write that was ever begun here, of each object.
    newest: BTreeMap<Key, u64>,
    /// What was applied since the agent was started.
    fresh: BTreeMap<Key, u64>,
    pub(crate) calls: u64,
    /// Rules that are applied, by the names of their objects: another life of a policy has others.
    pub(crate) rules: BTreeMap<String, Rule>,
}

/// An object on a machine.
#[derive(Debug, Default)]
struct Thing {
    applied: Option<Seen>,
}

/// A version of an object, as a handler saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) key: Key,
    pub(crate) number: u64,
    pub(crate) refs: Vec<Key>,
}

/// A property, and how it does not hold.
pub(crate) type Broken = (&'static str, String);

// === impl Machine ===

impl Machine {
    pub(crate) fn new(agent: &AgentSetup) -> Self {
        let AgentSetup { name, zone, kinds, trust, .. } = agent.clone();
        Self { name, kinds, zones: vec![zone], trust, ..Self::default() }
    }

    /// The agent is started. What it cannot remember is gone: the machine was started with it.
    pub(crate) fn start(&mut self, remembers: bool) {
        self.busy.clear();
        self.fresh.clear();
        if !remembers {
            self.things.clear();
            self.rules.clear();
        }
    }

    /// How the bus sees it, were it in that zone.
    pub(crate) fn viewer(&self, zone: &str) -> Viewer {
        Viewer { agent: Some((self.name.clone(), zone.to_owned())), kinds: self.kinds.clone(), tier: None }
    }

    pub(crate) fn zone(&self) -> &'static str {
        self.zones.last().copied().unwrap_or_default()
    }

    /// What is applied.
    pub(crate) fn applied(&self) -> BTreeMap<Key, u64> {
        let applied = |(key, thing): (&Key, &Thing)| Some((key.clone(), thing.applied.as_ref()?.number));
        self.things.iter().filter_map(applied).collect()
    }

    /// What is there, or may be: an apply of it was begun, and it was not removed since.
    pub(crate) fn remains(&self) -> impl Iterator<Item = &Key> {
        self.things.keys()
    }

    fn may_see(&self, model: &Model, key: &Key, index: usize, zone: &str) -> bool {
        let version = &model.objects[key].list[index].version;
        version.as_ref().is_some_and(|version| self.viewer(zone).sees(key, version))
    }

    /// Whether an object may be gone for this machine since that write of it.
    fn may_go(&self, model: &Model, key: &Key, number: u64) -> bool {
        let writes = &model.objects[key];
        let hidden = |index| self.zones.iter().any(|zone| !self.may_see(model, key, index, zone));
        writes.find(number).is_some_and(|from| (from..writes.list.len()).any(hidden))
    }

    /// A handler is asked to apply an object.
    pub(crate) fn begin_apply(
        &mut self,
        model: &Model,
        seen: &Seen,
        reason: Reason,
        attempt: u32,
        phase: Phase,
    ) -> Result<(), Broken> {
        self.calls += 1;
        let Seen { key, number, refs } = seen;
        if let Some(other) = self.busy.insert(key.clone(), "apply") {
            return Err(("Serial", format!("apply of {key} while {other} runs")));
        }
        let Some(index) = model.objects.get(key).and_then(|writes| writes.find(*number)) else {
            return Err(("Reliable", format!("{key} was never written as {number}")));
        };
        if !self.zones.iter().any(|zone| self.may_see(model, key, index, zone)) {
            return Err(("Filtered", format!("{key} as {number} is for others")));
        }
        if let Some(newest) = self.newest.insert(key.clone(), *number).filter(|newest| newest > number) {
            return Err(("Ordered", format!("{key} goes back from {newest} to {number}")));
        }
        let again = self.fresh.get(key) == Some(number);
        if again && reason == Reason::Changed && attempt == 0 {
            return Err(("Unique", format!("{key} as {number} is a change for the second time")));
        }
        if phase == Phase::Quiet && reason == Reason::Changed {
            return Err(("Quiet", format!("{key} as {number} is a change although nothing has changed")));
        }
        for needed in refs.iter().filter(|needed| self.kinds.contains(&needed.kind.as_str())) {
            let applied = self.things.get(needed).and_then(|thing| thing.applied.as_ref());
            // What is to go serves until it goes, and is not applied again.
            let proven = self.trust || self.fresh.contains_key(needed);
            if !applied.is_some_and(|applied| proven || self.may_go(model, needed, applied.number)) {
                return Err(("RefOrder", format!("apply of {key} before {needed}, which it needs, is applied")));
            }
            if self.busy.get(needed) == Some(&"remove") {
                return Err(("RefOrder", format!("apply of {key} while {needed}, which it needs, is being removed")));
            }
        }
        self.things.entry(key.clone()).or_default();
        Ok(())
    }

    /// A handler is asked to remove an object.
    pub(crate) fn begin_remove(&mut self, model: &Model, seen: &Seen, phase: Phase) -> Result<(), Broken> {
        self.calls += 1;
        let Seen { key, number, .. } = seen;
        if let Some(other) = self.busy.insert(key.clone(), "remove") {
            return Err(("Serial", format!("remove of {key} while {other} runs")));
        }
        if model.objects.get(key).and_then(|writes| writes.find(*number)).is_none() {
            return Err(("Reliable", format!("{key} was never written as {number}")));
        }
        if !self.may_go(model, key, *number) {
            return Err(("NoFalseDelete", format!("{key} as {number} was never deleted, nor is it for others")));
        }
        if phase == Phase::Quiet {
            return Err(("Quiet", format!("{key} is removed although nothing has changed")));
        }
        let needs = |(_, thing): &(&Key, &Thing)| {
            let refs = thing.applied.as_ref().map_or(&[][..], |applied| &applied.refs);
            refs.contains(key)
        };
        if let Some((other, _)) = self.things.iter().find(needs) {
            return Err(("RefOrder", format!("remove of {key} while {other}, which needs it, is there")));
        }
        Ok(())
    }

    /// A handler has ended.
    pub(crate) fn end(&mut self, seen: &Seen, removes: bool, succeeded: bool) {
        let Seen { key, number, .. } = seen;
        self.busy.remove(key);
        if !succeeded {
            if removes {
                // It may be half gone: to have it here again takes another apply, though nobody has written it again.
                self.fresh.remove(key);
            }
            return;
        }
        if removes {
            self.things.remove(key);
            self.fresh.remove(key);
        } else {
            self.things.entry(key.clone()).or_default().applied = Some(seen.clone());
            self.fresh.insert(key.clone(), *number);
        }
    }

    /// It is in its last zone, and has everything that is there.
    pub(crate) fn forget(&mut self) {
        self.zones.drain(..self.zones.len().saturating_sub(1));
    }

    /// What is kept of it.
    pub(crate) fn kept(&self) -> usize {
        let things = self.things.len() + self.newest.len() + self.fresh.len();
        things + self.zones.len() + self.rules.len()
    }

    /// Objects whose handlers run.
    pub(crate) fn busy(&self) -> BTreeSet<&Key> {
        self.busy.keys().collect()
    }
}
