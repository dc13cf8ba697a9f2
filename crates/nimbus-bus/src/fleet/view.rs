//! An agent as it is shown to those who ask.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::{Kind, Revision};
use nimbus_store::{Reach, Scope, State};
use nimbus_wire::v1;
use tokio::time::Instant;

use crate::fleet::{
    Fleet,
    agent::{Agent, Entry},
    exception::millis,
    progress::Counts,
    shape::{Memo, Shape},
};

/// Judges agents by some kinds, or by all that they are subscribed to, in one state of the collection.
pub(crate) struct Viewer<'a> {
    fleet: &'a Fleet,
    state: &'a State,
    now: Instant,
    kinds: Option<&'a BTreeSet<Kind>>,
    memo: Memo<Shared>,
}

/// What agents of one shape have in common.
struct Shared {
    /// Of the kinds that they are subscribed to, those that they are judged by.
    kinds: Option<Arc<BTreeSet<Kind>>>,
    last: Revision,
}

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) last_relevant: Revision,
    pub(crate) in_sync: bool,
    pub(crate) counts: Counts,
}

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Brief,
    Exceptions,
    Everything,
}

// === impl Viewer ===

impl<'a> Viewer<'a> {
    pub(crate) fn new(fleet: &'a Fleet, state: &'a State, kinds: Option<&'a BTreeSet<Kind>>, now: Instant) -> Self {
        Self { fleet, state, now, kinds, memo: Memo::default() }
    }

    /// How an agent stands: in sync if it has applied the last change that concerns it, and nothing failed or waits.
    pub(crate) fn health(&mut self, agent: &Agent, entry: &Entry) -> Health {
        let (state, kinds) = (self.state, self.kinds);
        let shared = self.memo.of(&entry.shape, || {
            let judged = judged(&entry.shape, kinds);
            let reach = Reach { kinds: judged.as_deref(), filter: entry.shape.filter.as_ref() };
            let last = state.last_shared(reach, &entry.shape.labels);
            Shared { kinds: judged, last }
        });
        let reach = Reach { kinds: shared.kinds.as_deref(), filter: entry.shape.filter.as_ref() };
        let last_relevant = shared.last.max(state.last_own(reach, &agent.id)).min(state.head());
        let counts = entry.progress.counts(|kind| kinds.is_none_or(|kinds| kinds.contains(kind)));
        let applied = entry.progress.marks().applied;
        let in_sync = applied >= last_relevant && counts.failed == 0 && counts.pending == 0;
        Health { last_relevant, in_sync, counts }
    }

    /// An agent as it travels.
    pub(crate) fn show(&mut self, agent: &Agent, entry: &Entry, detail: Detail) -> v1::AgentInfo {
        let health = self.health(agent, entry);
        let (now, marks) = (self.now, entry.progress.marks());
        let (state, since) = entry.presence.state(now, self.fleet.lost_after);
        let shape = &entry.shape;
        let age = |at: Instant| millis(now.saturating_duration_since(at));
        let exceptions = entry.progress.exceptions.iter();
        let exceptions = exceptions.filter(|(key, _)| self.kinds.is_none_or(|kinds| kinds.contains(key.kind())));
        v1::AgentInfo {
            agent: agent.id.to_string(),
            labels: shape.labels.to_wire(),
            state: state.into(),
            state_ms: age(since),
            last_seen_ms: age(entry.last_seen),
            software: entry.software.to_string(),
            session: entry.session,
            kinds: shape.kinds.iter().flat_map(|kinds| kinds.iter()).map(ToString::to_string).collect(),
            filter: shape.filter.as_ref().map(|filter| filter.to_wire()),
            received: marks.received.0,
            applied: marks.applied.0,
            last_relevant: health.last_relevant.0,
            in_sync: health.in_sync,
            lag_ms: self.lag(agent, shape, marks.applied, health.last_relevant),
            failed: health.counts.failed,
            pending: health.counts.pending,
            degraded: health.counts.degraded,
            exceptions: match detail {
                Detail::Brief => Vec::new(),
                _ => exceptions.map(|(key, exception)| exception.to_wire(key, now)).collect(),
            },
            events: if detail == Detail::Everything { entry.events.to_wire(now) } else { Vec::new() },
        }
    }

    /// Since the first change that the agent has not applied.
    pub(crate) fn lag(&self, agent: &Agent, shape: &Shape, applied: Revision, last_relevant: Revision) -> u64 {
        if applied >= last_relevant {
            return 0;
        }
        let scope = Scope { kinds: judged(shape, self.kinds), ..shape.scope(&agent.id) };
        let published = self.state.next_change(&scope, applied).and_then(|next| self.fleet.published_at(next));
        published.map_or(0, |published| millis(self.now.saturating_duration_since(published)).max(1))
    }
}

/// Of the kinds that agents of a shape are subscribed to, those that they are judged by.
fn judged(shape: &Shape, kinds: Option<&BTreeSet<Kind>>) -> Option<Arc<BTreeSet<Kind>>> {
    match (kinds, &shape.kinds) {
        (None, subscribed) => subscribed.clone(),
        (Some(kinds), None) => Some(Arc::new(kinds.clone())),
        (Some(kinds), Some(subscribed)) => Some(Arc::new(kinds.intersection(subscribed).cloned().collect())),
    }
}
