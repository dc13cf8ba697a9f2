//! Sessions: live subscriptions, and what their reports say.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, mapref::entry::Entry};
use nimbus_core::{AgentId, LeafHasher, ObjectKey, Revision};
use nimbus_store::{Scope, Signal};
use nimbus_wire::v1;
use parking_lot::Mutex;
use tonic::Status;

use crate::{fault, metrics::Metrics};

/// One live subscription.
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) agent: Option<AgentId>,
    pub(crate) signal: Signal,
    state: Mutex<State>,
}

/// What others want of a session; its stream looks when the signal is raised.
#[derive(Default)]
struct State {
    end: Option<Status>,
    drain: Option<v1::Drain>,
    rescope: Option<Scope>,
    report_wanted: bool,
    progress: Progress,
}

/// How far a subscriber says to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    pub(crate) sequence: u64,
    pub(crate) received: Revision,
    pub(crate) applied: Revision,
    pub(crate) received_bytes: u64,
    pub(crate) exceptions: BTreeMap<ObjectKey, v1::Exception>,
    /// A report was lost and no full one came since.
    pub(crate) full_wanted: bool,
}

/// What a session's stream has to do.
pub(crate) enum Order {
    End(Status),
    Send(v1::notice::Notice),
    Rescope(Scope),
}

/// All live sessions.
pub(crate) struct Sessions {
    seed: u64,
    opened: AtomicU64,
    limit: usize,
    /// Streams that have not ended, superseded ones included.
    live: AtomicUsize,
    by_id: DashMap<u64, Arc<Session>>,
    by_agent: DashMap<AgentId, u64>,
    /// No more sessions are opened: come back after this long.
    draining: Mutex<Option<Duration>>,
    metrics: Metrics,
}

// === impl Session ===

impl Session {
    /// What others want of this session, one thing at a time.
    pub(crate) fn order(&self) -> Option<Order> {
        let mut state = self.state.lock();
        if let Some(drain) = state.drain.take() {
            return Some(Order::Send(v1::notice::Notice::Drain(drain)));
        }
        if let Some(status) = state.end.take() {
            return Some(Order::End(status));
        }
        if std::mem::take(&mut state.report_wanted) {
            return Some(Order::Send(v1::notice::Notice::ReportWanted(v1::ReportWanted {})));
        }
        state.rescope.take().map(Order::Rescope)
    }

    /// Bytes of frames that the subscriber says to have received.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.state.lock().progress.received_bytes
    }

    /// Ends the session.
    pub(crate) fn end(&self, status: Status) {
        self.state.lock().end = Some(status);
        self.signal.raise();
    }

    /// Takes a report, and with it the scope that it asks for.
    pub(crate) fn report(
        &self,
        report: v1::ReportRequest,
        rescope: Option<Scope>,
        head: Revision,
        max_exceptions: usize,
    ) -> Result<v1::ReportResponse, Status> {
        let exceptions = keyed(report.exceptions)?;
        let cleared: BTreeSet<ObjectKey> = report
            .cleared
            .iter()
            .map(ObjectKey::try_from)
            .collect::<Result<_, _>>()
            .map_err(|error| fault::field("cleared", &error))?;
        if report.sequence == 0 {
            return Err(fault::bad("sequence", "1 in the first report of a session, then one more in each"));
        }
        let mut state = self.state.lock();
        let progress = &mut state.progress;
        if report.sequence <= progress.sequence {
            // Sent again, or overtaken by a later one: it was taken already, or its time is over.
            return Ok(progress.answer());
        }
        progress.check(report.received, report.applied, head)?;
        let gap = !report.full && report.sequence - progress.sequence > 1;
        let kept = progress.exceptions.keys().filter(|key| !report.full && !cleared.contains(key));
        let keys: BTreeSet<&ObjectKey> = kept.chain(exceptions.iter().map(|(key, _)| key)).collect();
        if keys.len() > max_exceptions {
            let message = format!("exceptions of one session are limited to {max_exceptions}");
            return Err(fault::full("exceptions", message));
        }
        if report.full {
            progress.exceptions.clear();
        }
        cleared.iter().for_each(|key| drop(progress.exceptions.remove(key)));
        progress.exceptions.extend(exceptions);
        progress.sequence = report.sequence;
        progress.received = progress.received.max(Revision(report.received));
        progress.applied = progress.applied.max(Revision(report.applied));
        progress.received_bytes = progress.received_bytes.max(report.received_bytes);
        progress.full_wanted = (progress.full_wanted || gap) && !report.full;
        let answer = progress.answer();
        state.report_wanted |= gap;
        if rescope.is_some() {
            state.rescope = rescope;
        }
        drop(state);
        self.signal.raise();
        Ok(answer)
    }
}

// === impl Progress ===

impl Progress {
    fn answer(&self) -> v1::ReportResponse {
        v1::ReportResponse { sequence: self.sequence, full_wanted: self.full_wanted }
    }

    fn check(&self, received: u64, applied: u64, head: Revision) -> Result<(), Status> {
        if received > head.0 {
            return Err(fault::bad("received", format!("at most {head}, the newest revision, found {received}")));
        }
        if applied > received.max(self.received.0) {
            return Err(fault::bad("applied", format!("at most what was received ({received}), found {applied}")));
        }
        Ok(())
    }
}

// === impl Sessions ===

impl Sessions {
    pub(crate) fn new(seed: u64, limit: usize, metrics: Metrics) -> Self {
        let (by_id, by_agent) = (DashMap::new(), DashMap::new());
        Self {
            seed,
            opened: AtomicU64::new(0),
            limit,
            live: AtomicUsize::new(0),
            by_id,
            by_agent,
            draining: Mutex::default(),
            metrics,
        }
    }

    /// A session that nobody knows of yet.
    pub(crate) fn prepare(&self, agent: Option<AgentId>, signal: Signal) -> Result<Arc<Session>, Status> {
        if let Some(wait) = *self.draining.lock() {
            return Err(fault::later("the bus is shutting down", wait));
        }
        let replaces = agent.as_ref().is_some_and(|agent| self.by_agent.contains_key(agent));
        // Also those that are over, but whose stream is stuck in a connection that nobody reads.
        let live = self.live.load(Ordering::Relaxed);
        if live >= self.limit.saturating_mul(2) || (live >= self.limit && !replaces) {
            self.metrics.refuse("sessions");
            let message = format!("sessions are limited to {} (hint: connect to another bus)", self.limit);
            return Err(fault::full("sessions", message));
        }
        let id = session_number(self.seed, self.opened.fetch_add(1, Ordering::Relaxed));
        Ok(Arc::new(Session { id, agent, signal, state: Mutex::default() }))
    }

    /// Opens a session. An older one of the same agent ends.
    pub(crate) fn open(&self, session: &Arc<Session>) {
        let id = session.id;
        self.live.fetch_add(1, Ordering::Relaxed);
        self.by_id.insert(id, session.clone());
        let older = session.agent.clone().and_then(|agent| self.by_agent.insert(agent, id));
        self.metrics.count_session(1);
        if let Some((_, older)) = older.and_then(|older| self.by_id.remove(&older)) {
            self.metrics.count_session(-1);
            self.metrics.superseded.inc();
            older.end(fault::superseded(id));
        }
        if let Some(wait) = *self.draining.lock() {
            session.end(fault::later("the bus is shutting down", wait));
        }
    }

    /// Forgets a session whose stream has ended.
    pub(crate) fn close(&self, session: &Session) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        if self.by_id.remove(&session.id).is_some() {
            self.metrics.count_session(-1);
        }
        if let Some(agent) = &session.agent
            && let Entry::Occupied(entry) = self.by_agent.entry(agent.clone())
            && *entry.get() == session.id
        {
            entry.remove();
        }
    }

    /// The session of that number.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Session>> {
        self.by_id.get(&id).map(|session| session.clone())
    }

    /// Sends everybody away, each with a time of its own to come back at.
    pub(crate) fn drain(&self, spread: Duration, reason: &str) {
        *self.draining.lock() = Some(spread);
        let spread_ms = u64::try_from(spread.as_millis()).unwrap_or(u64::MAX).max(1);
        let sessions: Vec<_> = self.by_id.iter().map(|entry| entry.value().clone()).collect();
        for session in sessions {
            // Session numbers are scattered, so these are too.
            let retry_after_ms = session.id % spread_ms;
            session.state.lock().drain = Some(v1::Drain { retry_after_ms, reason: reason.to_owned() });
            session.end(fault::later(reason, Duration::from_millis(retry_after_ms)));
        }
    }
}

fn keyed(exceptions: Vec<v1::Exception>) -> Result<Vec<(ObjectKey, v1::Exception)>, Status> {
    let keyed = exceptions.into_iter().enumerate().map(|(at, exception)| {
        let path = format!("exceptions[{at}].key");
        let key = exception.key.as_ref().ok_or_else(|| fault::bad(&path, "the key of the object"))?;
        let key = ObjectKey::try_from(key).map_err(|error| fault::field(&path, &error))?;
        let v1::Exception { code, message, .. } = exception;
        let (code, message) = (shortened(code, MAX_CODE), shortened(message, MAX_MESSAGE));
        Ok((key, v1::Exception { code, message, key: None, ..exception }))
    });
    keyed.collect()
}

/// Codes are words, such as `EPERM`.
const MAX_CODE: usize = 64;

/// Enough for what a command printed last; kept for as long as the exception lasts.
const MAX_MESSAGE: usize = 1024;

fn shortened(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
    text
}

/// A number that is hard to guess for who knows others of the same seed, but not the seed.
fn session_number(seed: u64, count: u64) -> u64 {
    let mut hasher = LeafHasher::extra();
    hasher.part(&seed.to_le_bytes());
    hasher.part(&count.to_le_bytes());
    let digest = hasher.finish();
    u64::from_le_bytes(digest.as_bytes()[8..].try_into().expect("eight bytes"))
}
