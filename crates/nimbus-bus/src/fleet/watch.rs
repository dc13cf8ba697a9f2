//! `WatchStatus`: what agents report, as it changes.
//!
//! A watcher is a cursor in the order of changes, and nothing else: an agent that changed ten times while the watcher did
//! not read is sent once. Agents that were forgotten stand in the same order, the latest ones; a watcher that is behind
//! them begins again, and is told so.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Bound,
    sync::Arc,
};

use nimbus_core::{AgentId, Kind, Selector};
use nimbus_wire::v1::{self, watch_status_response::Event};
use prost::Message as _;
use tokio::time::{Duration, Instant};
use tonic::Status;

use crate::{
    fleet::{
        Agent, Slot, check_draining, kinds_of,
        order::{Change, Changes},
        selector_of,
        view::{Detail, Viewer},
    },
    inner::Inner,
};

/// A call that watches.
pub(crate) struct Watch {
    inner: Arc<Inner>,
    kinds: Option<BTreeSet<Kind>>,
    selector: Selector,
    phase: Phase,
    /// Everything up to this version was sent, but for the changes at hand.
    version: u64,
    /// Changes at hand, and the version that they begin after.
    changes: VecDeque<Change>,
    after: u64,
    /// Statuses of the agent last told of that did not fit into the message.
    rest: Option<v1::AgentReport>,
    /// When it looked last.
    looked: Option<Instant>,
    /// There was more than it took.
    more: bool,
    over: bool,
    _slot: Slot,
}

/// How far a watcher is.
enum Phase {
    /// It goes through all agents by their names. This one was the last.
    First(Option<AgentId>),
    /// It follows the changes.
    Live,
}

/// Agents that are taken at a time: few enough to hold on to, enough not to take a lock for each.
const AT_ONCE: usize = 128;

/// Reports of one agent that come faster than this are sent as one.
const PACE: Duration = Duration::from_millis(50);

/// Bytes of statuses in one message: clients take 4 MiB, unless told otherwise.
const MAX_STATUSES: usize = 1 << 20;

// === impl Watch ===

impl Watch {
    /// Checks a request.
    pub(crate) fn begin(inner: Arc<Inner>, request: &v1::WatchStatusRequest) -> Result<Self, Status> {
        Ok(Self {
            kinds: kinds_of(&inner, &request.kinds)?,
            selector: selector_of(&inner, &request.selector)?,
            phase: Phase::First(None),
            version: inner.fleet.version(),
            changes: VecDeque::new(),
            after: 0,
            rest: None,
            looked: None,
            more: false,
            over: false,
            _slot: Slot::take(&inner)?,
            inner,
        })
    }

    /// The next message, when there is one.
    pub(crate) async fn next(mut self) -> Option<(Result<v1::WatchStatusResponse, Status>, Self)> {
        while !self.over {
            if let Err(status) = check_draining(&self.inner) {
                self.over = true;
                return Some((Err(status), self));
            }
            if let Some(event) = self.event(Instant::now()) {
                return Some((Ok(v1::WatchStatusResponse { event: Some(event) }), self));
            }
            let seen = self.inner.fleet.activity.count();
            // Something may have come after it was looked for, and before this.
            if self.version == self.inner.fleet.version() {
                self.inner.fleet.activity.beyond(seen).await;
            }
            if let Some(looked) = self.looked {
                tokio::time::sleep_until(looked + PACE).await;
            }
        }
        None
    }

    /// The next event, if there is one.
    fn event(&mut self, now: Instant) -> Option<Event> {
        loop {
            if let Some(rest) = self.rest.take() {
                return Some(self.portion(rest));
            }
            while let Some(change) = self.changes.pop_front() {
                let event = match change {
                    Change::Agent(agent) => match self.report(&agent, now) {
                        Some(Event::Report(report)) => Some(self.portion(report)),
                        event => event,
                    },
                    Change::Removed(id) => Some(Event::Forgotten(id.to_string())),
                };
                if event.is_some() {
                    return event;
                }
            }
            match &self.phase {
                Phase::First(last) => {
                    let page = self.page(last.as_ref());
                    match page.last() {
                        Some(last) => self.phase = Phase::First(Some(last.id.clone())),
                        None => {
                            self.phase = Phase::Live;
                            let state = self.inner.store.state();
                            let caught = v1::Caught { epoch: state.epoch().0, revision: state.head().0 };
                            return Some(Event::CaughtUp(caught));
                        }
                    }
                    self.changes = page.into_iter().map(Change::Agent).collect();
                }
                Phase::Live => {
                    if !self.more && self.looked.is_some_and(|looked| now < looked + PACE) {
                        return None;
                    }
                    self.looked = Some(now);
                    self.inner.fleet.tick(now);
                    match self.inner.fleet.changes(self.version, AT_ONCE) {
                        None => {
                            (self.phase, self.after) = (Phase::First(None), 0);
                            self.version = self.inner.fleet.version();
                            return Some(Event::Restarted(v1::Restarted {}));
                        }
                        Some(Changes { list, to }) => {
                            (self.after, self.version) = (self.version, to);
                            self.more = list.len() >= AT_ONCE;
                            if list.is_empty() {
                                return None;
                            }
                            self.changes = list.into();
                        }
                    }
                }
            }
        }
    }

    /// As much of a report as fits into a message; the rest comes next.
    fn portion(&mut self, mut report: v1::AgentReport) -> Event {
        let mut bytes = 0;
        let fits = report.statuses.iter().take_while(|status| {
            bytes += status.encoded_len();
            bytes <= MAX_STATUSES
        });
        // One alone is sent, however large it is.
        let rest = report.statuses.split_off(fits.count().max(1).min(report.statuses.len()));
        if !rest.is_empty() {
            self.rest = Some(v1::AgentReport { agent: report.agent.clone(), statuses: rest });
        }
        Event::Report(report)
    }

    fn page(&self, after: Option<&AgentId>) -> Vec<Arc<Agent>> {
        let agents = self.inner.fleet.agents();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = agents.range::<AgentId, _>((from, Bound::Unbounded)).take(AT_ONCE);
        page.map(|(_, agent)| agent.clone()).collect()
    }

    /// What there is to say of an agent that changed.
    fn report(&self, agent: &Agent, now: Instant) -> Option<Event> {
        let entry = agent.entry.lock();
        if entry.is_forgotten() {
            // It stands once more in the order, as one that was.
            return None;
        }
        if !self.selector.matches(&entry.shape.labels) {
            // It may have matched before.
            let left = entry.labels_version > self.after && matches!(self.phase, Phase::Live);
            return left.then(|| Event::Forgotten(agent.id.to_string()));
        }
        let state = self.inner.store.state();
        let mut viewer = Viewer::new(&self.inner.fleet, &state, self.kinds.as_ref(), now);
        let info = viewer.show(agent, &entry, Detail::Exceptions);
        let covers = |kind: &Kind| self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind));
        // Who enters the selection is not known to the watcher.
        let after = if entry.labels_version > self.after { 0 } else { self.after };
        let statuses = entry.statuses.after(after, covers);
        Some(Event::Report(v1::AgentReport { agent: Some(info), statuses }))
    }
}
