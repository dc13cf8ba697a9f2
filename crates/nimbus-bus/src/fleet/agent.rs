//! One agent, as far as the bus knows.

use std::{mem, sync::Arc};

use nimbus_core::{AgentId, Revision};
use nimbus_store::Scope;
use nimbus_wire::v1::AgentState;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use crate::fleet::{
    events::Events,
    exception::shortened,
    kept::Kept,
    progress::{Marks, Progress},
    report::Report,
    shape::Shape,
    statuses::{self, StatusLimits, Statuses},
};

/// One agent. It is here once, whatever the number of its sessions and objects.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) entry: Mutex<Entry>,
}

/// What is known of an agent.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) shape: Arc<Shape>,
    pub(crate) presence: Presence,
    /// Its session, or the last one that it had.
    pub(crate) session: u64,
    pub(crate) last_seen: Instant,
    /// It said that it goes for good.
    pub(crate) leaving: bool,
    pub(crate) progress: Progress,
    pub(crate) software: Box<str>,
    pub(crate) events: Events,
    pub(crate) statuses: Statuses,
    /// The version of the fleet at which anything here last changed.
    pub(crate) version: u64,
    /// The same for its labels.
    pub(crate) labels_version: u64,
}

/// A session that begins.
pub(crate) struct Opening {
    pub(crate) session: u64,
    pub(crate) scope: Scope,
    pub(crate) software: String,
    /// It goes on from this revision, in the same scope; `None` if it begins anew.
    pub(crate) resumed: Option<Revision>,
    /// The newest revision at this time.
    pub(crate) head: Revision,
}

/// What a report means, after its session has looked at it.
pub(crate) struct Update {
    pub(crate) session: u64,
    pub(crate) marks: Marks,
    /// The marks are of another scope than the session has, or will have.
    pub(crate) void: bool,
    /// The scope that the session asks for with it.
    pub(crate) rescope: Option<Scope>,
    pub(crate) report: Report,
    pub(crate) head: Revision,
}

/// Names of programs are short.
const MAX_SOFTWARE: usize = 256;

/// Whether an agent is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It has had a session since.
    Connected(Instant),
    /// It has had none since. After a while it is lost.
    Away(Instant),
    /// It is no longer remembered; whoever holds on to it has missed that.
    Forgotten,
}

// === impl Entry ===

impl Entry {
    /// An agent that was not known.
    pub(crate) fn new(shape: Arc<Shape>, opening: Opening, now: Instant) -> Self {
        Self {
            shape,
            presence: Presence::Connected(now),
            session: opening.session,
            last_seen: now,
            leaving: false,
            progress: Progress::new(opening.head),
            software: shortened(opening.software, MAX_SOFTWARE).into(),
            events: Events::default(),
            statuses: Statuses::default(),
            version: 0,
            labels_version: 0,
        }
    }

    /// Another session of the agent. If it goes on in the same scope, what the agent said still holds.
    pub(crate) fn reopen(&mut self, shape: Arc<Shape>, opening: Opening, limits: StatusLimits, now: Instant) {
        let same = Arc::ptr_eq(&self.shape, &shape) && !self.progress.is_void();
        match opening.resumed {
            Some(position) if same => self.progress.resume(position),
            _ => {
                self.progress = Progress::new(opening.head);
                self.statuses.take(Vec::new(), true, self.version, limits);
            }
        }
        self.reshape(shape);
        if !matches!(self.presence, Presence::Connected(_)) {
            self.presence = Presence::Connected(now);
        }
        self.software = shortened(opening.software, MAX_SOFTWARE).into();
        (self.session, self.last_seen, self.leaving) = (opening.session, now, false);
    }

    /// Takes what the agent says, and the shape that it asks for. Returns how many statuses there was no room for. What a full
    /// report replaces is left in it, so that it can go when nobody waits any more.
    pub(crate) fn take(
        &mut self,
        update: &mut Update,
        shape: Option<Arc<Shape>>,
        limits: StatusLimits,
        now: Instant,
    ) -> u32 {
        let Update { marks, void, report, head, .. } = update;
        self.last_seen = now;
        self.leaving |= report.leaving;
        self.progress.except(report);
        mem::take(&mut report.events).into_iter().for_each(|event| self.events.add(event));
        self.progress.mark(*marks, *void, now);
        if let Some(shape) = shape {
            self.reshape(shape);
            self.progress.rescope(*head);
        }
        self.statuses.take(mem::take(&mut report.statuses), report.full, self.version, limits)
    }

    /// What is kept of its reports.
    pub(crate) fn kept(&self) -> Kept {
        Kept { exceptions: self.progress.exception_bytes(), statuses: self.statuses.bytes() }
    }

    /// The same after a report, at most: what of its statuses is kept is known when they are taken.
    pub(crate) fn kept_after(&self, report: &Report) -> Kept {
        let exceptions = self.progress.exception_bytes_after(report);
        Kept { exceptions, statuses: self.statuses.bytes() + statuses::most_bytes(&report.statuses) }
    }

    fn reshape(&mut self, shape: Arc<Shape>) {
        if self.shape.labels != shape.labels {
            self.labels_version = self.version;
        }
        self.shape = shape;
    }

    /// Whether whoever holds on to it has missed that it is no longer remembered.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.presence == Presence::Forgotten
    }
}

// === impl Presence ===

impl Presence {
    /// The state at a time, and since when.
    pub(crate) fn state(self, now: Instant, lost_after: Duration) -> (AgentState, Instant) {
        match self {
            Self::Connected(since) => (AgentState::Connected, since),
            Self::Away(since) if now < since + lost_after => (AgentState::Away, since),
            Self::Away(since) => (AgentState::Lost, since + lost_after),
            Self::Forgotten => (AgentState::Lost, now),
        }
    }
}
