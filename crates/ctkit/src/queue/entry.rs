//! A key in the queue.

use tokio::time::Instant;

use crate::queue::{
    case::{Case, Hold},
    cause::Causes,
    group::Group,
    lane::Lane,
    state::{State, View},
};

/// A key in the queue.
#[derive(Debug)]
pub(crate) struct Entry<K> {
    pub(crate) key: K,
    pub(crate) lane: Lane,
    pub(crate) group: Option<Group>,
    pub(crate) paused: bool,
    pub(crate) case: Case,
    /// Where it stands: in the list of those that are ready, among the timers, or nowhere; `None` while it is new.
    pub(crate) state: Option<State>,
    /// In which of the two lists, if it is ready.
    pub(crate) live: bool,
    pub(crate) since: Instant,
}

// === impl Entry ===

impl<K> Entry<K> {
    pub(crate) fn new(key: K, lane: Lane, now: Instant) -> Self {
        let case = Case::default();
        Self { key, lane, group: None, paused: false, case, state: None, live: false, since: now }
    }

    /// How it should be by now; `None` if there is nothing to remember.
    pub(crate) fn next_state(&mut self, closed: bool, now: Instant) -> Option<State> {
        self.case.ripen(now);
        let due = self.case.due();
        if let Some(run) = &self.case.run {
            return Some(State::Running { since: run.since });
        }
        if self.paused {
            return Some(State::Paused);
        }
        if self.case.is_blank() {
            return self.case.quiet_until.filter(|until| *until > now).map(|until| State::Quiet { until });
        }
        if closed && due.is_some() {
            return Some(State::Held);
        }
        Some(match (self.case.hold, due) {
            (Hold::Waiting, until) => State::Waiting { until },
            (Hold::Backoff(until), _) => State::Retrying { until },
            (Hold::Quarantine(until), _) => State::Quarantined { until },
            (Hold::Poison, _) => State::Poisoned,
            (Hold::Permanent, _) => State::Failed,
            (Hold::None, Some(until)) if until > now => State::Delayed { until },
            (Hold::None, _) => State::Ready,
        })
    }

    pub(crate) fn view(&self) -> View<'_, K> {
        let running = self.case.run.as_ref().map_or(Causes::NONE, |run| run.causes);
        View {
            lane: self.lane,
            key: &self.key,
            group: self.group,
            state: self.state.expect("an entry is settled before anybody sees it"),
            since: self.since,
            causes: self.case.causes | running,
            attempts: self.case.attempts,
            panics: self.case.panics,
            failure: self.case.failure.as_deref(),
        }
    }
}
