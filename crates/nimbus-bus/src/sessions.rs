//! All live sessions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, mapref::entry::Entry};
use nimbus_core::{AgentId, LeafHasher};
use nimbus_store::Signal;
use nimbus_wire::v1;
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fault,
    fleet::{Fleet, Opening},
    metrics::Metrics,
    session::{Session, Stage},
};

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
    fleet: Arc<Fleet>,
    metrics: Metrics,
}

// === impl Sessions ===

impl Sessions {
    pub(crate) fn new(seed: u64, limit: usize, fleet: Arc<Fleet>, metrics: Metrics) -> Self {
        let (by_id, by_agent) = (DashMap::new(), DashMap::new());
        Self {
            seed,
            opened: AtomicU64::new(0),
            limit,
            live: AtomicUsize::new(0),
            by_id,
            by_agent,
            draining: Mutex::default(),
            fleet,
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
        Ok(Arc::new(Session::new(id, agent, signal)))
    }

    /// Opens a session. An older one of the same agent ends.
    pub(crate) fn open(&self, session: &Arc<Session>, opening: Opening, now: Instant) {
        let id = session.id;
        self.live.fetch_add(1, Ordering::Relaxed);
        if opening.resumed.is_none() {
            session.begin(opening.head);
        }
        self.by_id.insert(id, session.clone());
        let mut older = None;
        if let Some(agent) = &session.agent {
            // The fleet is told while the entry is held: of two sessions, both have the same one last.
            let entry = self.by_agent.entry(agent.clone());
            if let Some(place) = self.fleet.connect(agent, opening, now) {
                session.seat(place);
            }
            match entry {
                Entry::Occupied(mut entry) => older = Some(entry.insert(id)),
                Entry::Vacant(entry) => drop(entry.insert(id)),
            }
        }
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
    pub(crate) fn close(&self, session: &Session, now: Instant) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        if self.by_id.remove(&session.id).is_some() {
            self.metrics.count_session(-1);
        }
        if let Some(agent) = &session.agent
            && let Entry::Occupied(entry) = self.by_agent.entry(agent.clone())
            && *entry.get() == session.id
        {
            if let Some(place) = session.place() {
                self.fleet.disconnect(place, session.id, now);
            }
            entry.remove();
        }
    }

    /// The session of that number.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Session>> {
        self.by_id.get(&id).map(|session| session.clone())
    }

    /// How far the answers to all of them have come.
    pub(crate) fn stages(&self) -> impl Iterator<Item = Stage> {
        self.by_id.iter().map(|entry| entry.stage())
    }

    /// For how long everybody is sent away, if the bus is stopping.
    pub(crate) fn draining(&self) -> Option<Duration> {
        *self.draining.lock()
    }

    /// Sends everybody away, each with a time of its own to come back at.
    pub(crate) fn drain(&self, spread: Duration, reason: &str) {
        *self.draining.lock() = Some(spread);
        let spread_ms = u64::try_from(spread.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut sessions: Vec<_> = self.by_id.iter().map(|entry| entry.value().clone()).collect();
        // In an order that does not depend on the machine, so that a simulation can repeat it.
        sessions.sort_unstable_by_key(|session| session.id);
        for session in sessions {
            // Session numbers are scattered, so these are too.
            let retry_after_ms = session.id % spread_ms;
            session.drain(v1::Drain { retry_after_ms, reason: reason.to_owned() });
        }
    }
}

/// A number that is hard to guess for who knows others of the same seed, but not the seed.
fn session_number(seed: u64, count: u64) -> u64 {
    let mut hasher = LeafHasher::extra();
    hasher.part(&seed.to_le_bytes());
    hasher.part(&count.to_le_bytes());
    let digest = hasher.finish();
    u64::from_le_bytes(digest.as_bytes()[8..].try_into().expect("eight bytes"))
}
