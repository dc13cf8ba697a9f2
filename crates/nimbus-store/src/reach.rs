//! What of a state reaches a reader: the questions of those who judge how far readers are.
//!
//! They are asked for many readers at a time. What readers with the same labels share is asked once, and what one of
//! them has of its own separately.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use nimbus_core::{AgentId, Audience, Generation, Kind, Labels, ObjectKey, Revision};

use crate::{
    filter::Filter,
    lane::{Address, Lane},
    record::Record,
    scope::{Scope, Viewer},
    state::State,
    view::View,
};

/// The part of a scope that says which objects, whoever looks: kinds and filter.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// These kinds; `None` is all of them.
    pub kinds: Option<&'a BTreeSet<Kind>>,
    /// Of those, the objects that pass.
    pub filter: Option<&'a Arc<Filter>>,
}

/// What a transaction has left.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Objects that nothing has changed since, with their generations; 0 if they ended with it.
    pub objects: BTreeMap<ObjectKey, Generation>,
    /// It may have changed what is for agents by their names. Of an object that ended, it is not known.
    pub names_agents: bool,
}

// === impl Reach ===

impl<'a> Reach<'a> {
    /// The kinds and the filter of a scope.
    pub fn of(scope: &'a Scope) -> Self {
        Self { kinds: scope.kinds.as_deref(), filter: scope.filter.as_ref() }
    }

    fn views<'s>(self, state: &'s State) -> impl Iterator<Item = &'s View> + use<'a, 's> {
        // Nobody reads through this filter now, so that its view may be gone: all objects are more than it had.
        let view = move |kind: &Kind| state.view(kind, self.filter).or_else(|| state.view(kind, None));
        let named = self.kinds.into_iter().flatten().filter_map(view);
        let all = self.kinds.is_none().then(|| state.kinds.keys()).into_iter().flatten().filter_map(view);
        named.chain(all)
    }
}

// === impl State ===

impl State {
    /// The last change that concerns a reader of this scope. Ends that were forgotten do not count.
    pub fn last_change(&self, scope: &Scope) -> Revision {
        let reach = Reach::of(scope);
        match &scope.viewer {
            Viewer::Observer => self.last_in(reach, &[Address::Observers]),
            Viewer::Agent { id, labels } => self.last_shared(reach, labels).max(self.last_own(reach, id)),
        }
    }

    /// The last change of what is for everyone, or for a selector that these labels match.
    pub fn last_shared(&self, reach: Reach<'_>, labels: &Labels) -> Revision {
        self.last_in(reach, &self.shared_by(labels))
    }

    /// The last change of what is for this agent by its name.
    pub fn last_own(&self, reach: Reach<'_>, agent: &AgentId) -> Revision {
        self.last_in(reach, &[Address::Agent(agent.clone())])
    }

    /// The first change after `after` that concerns a reader of this scope. Of an object that changed several times, only
    /// the last change is known.
    pub fn next_change(&self, scope: &Scope, after: Revision) -> Option<Revision> {
        let reach = Reach::of(scope);
        match &scope.viewer {
            Viewer::Observer => self.next_in(reach, &[Address::Observers], after),
            Viewer::Agent { id, labels } => {
                let mut addresses = self.shared_by(labels);
                addresses.push(Address::Agent(id.clone()));
                self.next_in(reach, &addresses, after)
            }
        }
    }

    /// Whether what is for everyone, or for a selector that these labels match, was last changed at `at`, in part.
    pub fn changed_shared(&self, reach: Reach<'_>, labels: &Labels, at: Revision) -> bool {
        self.changed_in(reach, &self.shared_by(labels), at)
    }

    /// Whether what is for this agent by its name was last changed at `at`, in part.
    pub fn changed_own(&self, reach: Reach<'_>, agent: &AgentId, at: Revision) -> bool {
        self.changed_in(reach, &[Address::Agent(agent.clone())], at)
    }

    /// What a transaction has left: the objects that nothing has changed since.
    pub fn trace(&self, at: Revision) -> Trace {
        let before = Revision(at.0.saturating_sub(1));
        let mut trace = Trace::default();
        for lane in self.kinds.values().filter_map(|kind| kind.all.lane(&Address::Observers)) {
            for record in lane.live_after(before).take_while(|record| record.revision() == at) {
                trace.names_agents |= matches!(record.audience(), Audience::Agents(_));
                trace.objects.insert(record.to_key(), record.generation());
            }
            for key in lane.ended_at(at) {
                trace.names_agents = true;
                trace.objects.insert(key.clone(), Generation(0));
            }
        }
        trace
    }

    /// When the object of that name ended, if it did and the end is still known.
    pub fn end_of(&self, key: &ObjectKey) -> Option<Revision> {
        self.kinds.get(key.kind())?.all.end_of(key)
    }

    /// The agents that an object names, each with the revision at which it was sent the object: who was named before an
    /// audience grew was not sent it again. `None` if the object is for others, or is not there.
    pub fn named(&self, key: &ObjectKey) -> Option<impl Iterator<Item = (&AgentId, Revision)>> {
        self.kinds.get(key.kind())?.all.named(key)
    }

    /// The revision at which an agent is sent an object that is for it.
    pub fn sent_at(&self, record: &Record, agent: &AgentId) -> Revision {
        let Audience::Agents(_) = record.audience() else { return record.revision() };
        let key = record.to_key();
        let seat = self.named(&key).and_then(|mut seats| seats.find(|(id, _)| *id == agent));
        seat.map_or(record.revision(), |(_, revision)| revision)
    }

    /// Whether an object is among those that pass a filter; `None` if nobody has read through it for a while.
    pub fn shows(&self, key: &ObjectKey, filter: &Arc<Filter>) -> Option<bool> {
        Some(self.kinds.get(key.kind())?.filtered.get(filter)?.get(key).is_some())
    }

    fn shared_by(&self, labels: &Labels) -> Vec<Address> {
        let selected = self.selectors.matching(labels).into_iter().map(Address::Selector);
        std::iter::once(Address::Everyone).chain(selected).collect()
    }

    fn last_in(&self, reach: Reach<'_>, addresses: &[Address]) -> Revision {
        let lasts = lanes(self, reach, addresses).filter(|lane| !lane.is_void()).map(|lane| lane.last());
        lasts.max().unwrap_or_default()
    }

    fn next_in(&self, reach: Reach<'_>, addresses: &[Address], after: Revision) -> Option<Revision> {
        lanes(self, reach, addresses).filter_map(|lane| lane.next_after(after)).min()
    }

    fn changed_in(&self, reach: Reach<'_>, addresses: &[Address], at: Revision) -> bool {
        lanes(self, reach, addresses).any(|lane| lane.changed_at(at))
    }
}

fn lanes<'s>(state: &'s State, reach: Reach<'_>, addresses: &[Address]) -> impl Iterator<Item = &'s Arc<Lane>> {
    reach
        .views(state)
        .flat_map(|view| addresses.iter().filter_map(|address| view.lane(address)))
}
