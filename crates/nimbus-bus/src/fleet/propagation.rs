//! How far an object or a transaction has come: one look at every agent that it may be for.

use std::collections::BTreeMap;

use nimbus_core::{AgentId, Audience, Generation, ObjectKey, Revision, Selector};
use nimbus_store::{Fields, Record, State};
use nimbus_wire::v1::{self, AgentState, exclusion::Reason};
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fleet::{
        Fleet,
        agent::{Agent, Entry},
        exception::{Exception, millis},
        progress::{Marks, Standing, Verdict},
        shape::{Memo, Shape},
        tally::{Said, Tally},
        target::{Aim, Target},
    },
    inner::Inner,
};

/// Which agents are asked about, and how many are named.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    pub(crate) selector: Selector,
    pub(crate) count_lost: bool,
    /// Of each sort; 0 leaves it to the bus.
    pub(crate) max_agents: u32,
}

/// A survey under way.
struct Counting<'a> {
    survey: &'a Survey,
    state: &'a State,
    fields: &'a dyn Fields,
    fleet: &'a Fleet,
    now: Instant,
    tally: Tally,
    /// How many there may be.
    agents: usize,
    /// The publish time that was asked for last; nearly all agents ask for the same.
    published: (Revision, Option<Instant>),
}

/// What a shape means for one object.
#[derive(Debug, Clone, Copy)]
struct ObjectMatch {
    /// Neither the selector nor the audience speaks against it.
    meant: bool,
    subscribed: bool,
}

/// What a shape means for a transaction.
#[derive(Debug, Clone, Copy)]
struct RevisionMatch {
    meant: bool,
    /// The last change that agents of this shape share.
    last: Revision,
    /// One of these changes is of this transaction.
    concerned: bool,
}

/// Enough to see what the matter is; who wants all of them says so.
const NAMED: usize = 20;

/// Beyond this, a list of agents is better asked for in pages.
const MAX_NAMED: usize = 10_000;

// === impl Survey ===

impl Survey {
    /// How far the target has come.
    pub(crate) fn of(&self, inner: &Inner, target: &Target, now: Instant) -> Result<v1::Propagation, Status> {
        let state = inner.store.state();
        let aim = target.aim(&state)?;
        inner.fleet.tick(now);
        Ok(self.count(&inner.fleet, &state, &*inner.fields, &aim, now))
    }

    /// How far it has come in that state of the collection.
    pub(crate) fn count(
        &self,
        fleet: &Fleet,
        state: &State,
        fields: &dyn Fields,
        aim: &Aim,
        now: Instant,
    ) -> v1::Propagation {
        let named = if self.max_agents == 0 { NAMED } else { (self.max_agents as usize).min(MAX_NAMED) };
        let tally = Tally::new(named, now, fleet.lost_after);
        let published = (Revision::ZERO, None);
        let agents = fleet.agents().len();
        let mut counting = Counting { survey: self, state, fields, fleet, now, tally, agents, published };
        match aim {
            Aim::Object(record) => counting.object(record),
            Aim::End(key, revision) => counting.revision(*revision, Some(key)),
            Aim::Revision(revision) => counting.revision(*revision, None),
        }
        let published = fleet.published_at(aim.revision());
        v1::Propagation {
            epoch: state.epoch().0,
            revision: aim.revision().0,
            generation: aim.generation().0,
            age_ms: published.map_or(0, |published| millis(now.saturating_duration_since(published)).max(1)),
            ..counting.tally.into_wire()
        }
    }
}

// === impl Counting ===

impl Counting<'_> {
    fn object(&mut self, record: &Record) {
        let fleet = self.fleet;
        let agents = fleet.agents();
        let mut memo = Memo::default();
        let Some(named) = self.state.named(record.key()) else {
            agents
                .values()
                .for_each(|agent| self.take_object(agent, record, record.revision(), &mut memo));
            return;
        };
        for (id, sent_at) in named {
            match agents.get(id) {
                Some(agent) => self.take_object(agent, record, sent_at, &mut memo),
                // Nothing is known of its labels.
                None if self.survey.selector.is_empty() => self.tally.exclude(Reason::NeverConnected, id),
                None => {}
            }
        }
    }

    fn take_object(&mut self, agent: &Agent, record: &Record, sent_at: Revision, memo: &mut Memo<ObjectMatch>) {
        let entry = agent.entry.lock();
        let &ObjectMatch { meant, subscribed } = memo.of(&entry.shape, || self.match_object(&entry.shape, record));
        if entry.leaving || !meant {
            return;
        }
        if !subscribed {
            self.tally.exclude(Reason::NotSubscribed, &agent.id);
            return;
        }
        if self.is_excluded(&agent.id, &entry) {
            return;
        }
        let (key, marks) = (record.key(), entry.progress.marks());
        let exception = entry.progress.exceptions.get(key);
        let standing = marks.stand(sent_at, record.generation(), exception);
        self.tally
            .count(&agent.id, &entry, marks, standing, exception.map(|exception| (key, exception)));
        self.time(&entry, standing, sent_at, || true);
    }

    fn match_object(&self, shape: &Shape, record: &Record) -> ObjectMatch {
        let audience = match record.audience() {
            Audience::Selector(selector) => selector.matches(&shape.labels),
            // Who is not named is not looked at.
            _ => true,
        };
        let passes = shape.filter.as_ref().is_none_or(|filter| {
            let shown = self.state.shows(record.key(), filter);
            shown.unwrap_or_else(|| filter.passes(record, self.fields))
        });
        ObjectMatch {
            meant: audience && self.survey.selector.matches(&shape.labels),
            subscribed: shape.covers(record.key().kind()) && passes,
        }
    }

    /// A transaction, or the end of an object.
    fn revision(&mut self, revision: Revision, ended: Option<&ObjectKey>) {
        let fleet = self.fleet;
        let agents = fleet.agents();
        let mut memo = Memo::default();
        // Of an end that is asked for, only what is said about it.
        let mut trace = self.state.trace(revision);
        if let Some(key) = ended {
            trace.objects = BTreeMap::from([(key.clone(), Generation(0))]);
        }
        for agent in agents.values() {
            let entry = agent.entry.lock();
            let matched = *memo.of(&entry.shape, || self.match_revision(&entry.shape, revision));
            if entry.leaving || !matched.meant || self.is_excluded(&agent.id, &entry) {
                continue;
            }
            let marks = entry.progress.marks();
            let bar = self.bar(&agent.id, &entry.shape, marks, revision, matched);
            let said = worst(&entry, marks, bar, &trace.objects);
            let generation = said.map_or_else(Default::default, |(key, _)| trace.objects[key]);
            let standing = marks.stand(bar, generation, said.map(|(_, exception)| exception));
            self.tally.count(&agent.id, &entry, marks, standing, said);
            // Who is not concerned gets there with the next bookmark, which says nothing of how long it took.
            let concerned = || {
                matched.concerned
                    || (trace.names_agents && self.state.changed_own(entry.shape.reach(), &agent.id, revision))
            };
            self.time(&entry, standing, revision, concerned);
        }
    }

    fn match_revision(&self, shape: &Shape, revision: Revision) -> RevisionMatch {
        if !self.survey.selector.matches(&shape.labels) {
            return RevisionMatch { meant: false, last: Revision::ZERO, concerned: false };
        }
        let (reach, labels) = (shape.reach(), &shape.labels);
        let last = self.state.last_shared(reach, labels);
        RevisionMatch { meant: true, last, concerned: self.state.changed_shared(reach, labels, revision) }
    }

    /// How far an agent must be to have everything of a transaction: nothing after the last change that concerns it.
    fn bar(&self, id: &AgentId, shape: &Shape, marks: Marks, revision: Revision, matched: RevisionMatch) -> Revision {
        if marks.applied >= revision || matched.last >= revision {
            return revision;
        }
        revision.min(matched.last.max(self.state.last_own(shape.reach(), id)))
    }

    /// Whether an agent does not count, for now.
    fn is_excluded(&mut self, id: &AgentId, entry: &Entry) -> bool {
        let (state, _) = entry.presence.state(self.now, self.fleet.lost_after);
        let excluded = state == AgentState::Lost && !self.survey.count_lost;
        if excluded {
            self.tally.exclude(Reason::Lost, id);
        }
        excluded
    }

    /// Notes how long it took, if it is known and the agent is concerned.
    fn time(&mut self, entry: &Entry, standing: Standing, revision: Revision, concerned: impl Fn() -> bool) {
        if !standing.received {
            return;
        }
        if self.published.0 != revision {
            self.published = (revision, self.fleet.published_at(revision));
            if self.published.1.is_some() {
                self.tally.reserve(self.agents);
            }
        }
        let (_, Some(published)) = self.published else { return };
        let is_applied = matches!(standing.verdict, Verdict::Applied | Verdict::Degraded);
        let applied = entry.progress.applied.passed(revision).filter(|_| is_applied);
        let received = entry.progress.received.passed(revision);
        if (received.is_some() || applied.is_some()) && concerned() {
            self.tally.time(published, received, applied);
        }
    }
}

/// Of what an agent says about these objects, what weighs most.
fn worst<'e>(entry: &'e Entry, marks: Marks, bar: Revision, objects: &BTreeMap<ObjectKey, Generation>) -> Said<'e> {
    let exceptions = &entry.progress.exceptions;
    let weight = |(key, exception): &(&ObjectKey, &Exception)| marks.stand(bar, objects[*key], Some(exception)).verdict;
    // There are few of the one or of the other.
    if objects.len() <= exceptions.len() {
        let said = objects.keys().filter_map(|key| exceptions.get_key_value(key));
        return said.max_by_key(weight);
    }
    exceptions.iter().filter(|(key, _)| objects.contains_key(*key)).max_by_key(weight)
}
