//! A session: one live subscription, and what its reports say.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use nimbus_core::{AgentId, Revision};
use nimbus_store::{Scope, Signal};
use nimbus_wire::v1;
use parking_lot::Mutex;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fault,
    fleet::{Agent, Fleet, Marks, Report, Update},
};

/// One live subscription.
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) agent: Option<AgentId>,
    pub(crate) signal: Signal,
    /// Its place in the fleet; observers have none.
    place: OnceLock<Arc<Agent>>,
    stage: AtomicU8,
    state: Mutex<State>,
}

/// How far the answer to a subscription has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Frames flow.
    Live,
    /// Publishers are still refilling what the subscriber may hold.
    Waiting,
    /// It waits for its turn to be sent a snapshot.
    Queued,
}

/// What others want of a session, and what it has said; its stream looks when the signal is raised.
#[derive(Default)]
struct State {
    end: Option<Status>,
    drain: Option<v1::Drain>,
    report_wanted: bool,
    rescope: Option<Scope>,
    switches: Switches,
    /// Ends of groups that were sent, the latest ones.
    sent: VecDeque<Revision>,
    /// What was published up to here may have reached the subscriber before.
    floor: Revision,
    /// Of the last report.
    sequence: u64,
    marks: Marks,
    received_bytes: u64,
    /// A report was lost and no full one came since.
    full_wanted: bool,
}

/// Changes of the scope. Several that are asked for before the stream gets to them are one.
#[derive(Debug, Default)]
struct Switches {
    /// The subscriber was told of so many.
    told: u32,
    /// One more was asked for since.
    pending: bool,
    /// The subscriber's watermarks include so many.
    included: u32,
}

/// Revisions whose publishing a report answers: of those that were sent, the newest that the watermarks passed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct News {
    pub(crate) received: Option<Revision>,
    pub(crate) applied: Option<Revision>,
}

/// What a session's stream has to do.
pub(crate) enum Order {
    End(Status),
    Send(v1::notice::Notice),
    Rescope(Scope),
}

/// Groups that an agent may be behind with its report. If it is further behind, latencies are not known.
const SENT: usize = 16;

// === impl Session ===

impl Session {
    /// A session that nobody knows of yet.
    pub(crate) fn new(id: u64, agent: Option<AgentId>, signal: Signal) -> Self {
        Self {
            id,
            agent,
            signal,
            place: OnceLock::new(),
            stage: AtomicU8::new(Stage::Live as u8),
            state: Mutex::default(),
        }
    }

    /// The session begins. What was published up to `floor` may have reached the subscriber before.
    pub(crate) fn begin(&self, floor: Revision) {
        self.state.lock().floor = floor;
    }

    /// Its agent has a place in the fleet.
    pub(crate) fn seat(&self, place: Arc<Agent>) {
        // There is only one place for each agent, and a session begins once.
        drop(self.place.set(place));
    }

    /// Its agent's place in the fleet; observers have none.
    pub(crate) fn place(&self) -> Option<&Arc<Agent>> {
        self.place.get()
    }

    /// Its stream says how far the answer has come.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// How far the answer has come.
    pub(crate) fn stage(&self) -> Stage {
        let stage = self.stage.load(Ordering::Relaxed);
        let is = |other: &Stage| *other as u8 == stage;
        [Stage::Waiting, Stage::Queued].into_iter().find(is).unwrap_or(Stage::Live)
    }

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
        self.state.lock().received_bytes
    }

    /// Ends the session.
    pub(crate) fn end(&self, status: Status) {
        self.state.lock().end = Some(status);
        self.signal.raise();
    }

    /// Ends the session because the bus stops.
    pub(crate) fn drain(&self, drain: v1::Drain) {
        let status = fault::later(&*drain.reason, Duration::from_millis(drain.retry_after_ms));
        self.state.lock().drain = Some(drain);
        self.end(status);
    }

    /// The stream tells the subscriber that the scope has changed. What follows may be old.
    pub(crate) fn switched(&self, head: Revision) {
        let mut state = self.state.lock();
        state.switches.told += 1;
        // One that was asked for after the stream took the last one.
        state.switches.pending = state.rescope.is_some();
        state.floor = head;
    }

    /// The stream has sent everything up to `last`, a change that concerns the subscriber.
    pub(crate) fn sent(&self, last: Revision) {
        let mut state = self.state.lock();
        if last <= state.floor || state.sent.back().is_some_and(|before| *before >= last) {
            return;
        }
        if state.sent.len() >= SENT {
            state.sent.pop_front();
        }
        state.sent.push_back(last);
    }

    /// Takes a report, and with it the scope that it asks for.
    pub(crate) fn report(
        &self,
        report: Report,
        rescope: Option<Scope>,
        head: Revision,
        fleet: &Fleet,
        now: Instant,
    ) -> Result<(v1::ReportResponse, News), Status> {
        let mut state = self.state.lock();
        if report.sequence <= state.sequence {
            // Sent again, or overtaken by a later one: it was taken already, or its time is over.
            return Ok((state.answer(0), News::default()));
        }
        let gap = !report.full && report.sequence - state.sequence > 1;
        let mut marks = state.check(&report, head)?;
        if gap || (state.full_wanted && !report.full) {
            // The exceptions that belong to a higher one may have been lost.
            marks.applied = marks.applied.min(state.marks.applied);
        }
        let scope_changes = report.scope_changes;
        let wanted = state.switches.told + u32::from(state.switches.pending || rescope.is_some());
        let (sequence, full, received_bytes) = (report.sequence, report.full, report.received_bytes);
        let refused = match self.place.get() {
            Some(agent) => {
                let (session, void) = (self.id, scope_changes < wanted);
                let update = Update { session, marks, void, rescope: rescope.clone(), report, head };
                fleet.report(agent, update, now)?
            }
            None => {
                fleet.check_exceptions(report.exceptions.len())?;
                0
            }
        };
        let before = if scope_changes > state.switches.included { Marks::default() } else { state.marks };
        let news = News {
            received: state.newest_sent(before.received, marks.received),
            applied: state.newest_sent(before.applied, marks.applied),
        };
        (state.sequence, state.marks) = (sequence, marks);
        state.switches.included = scope_changes;
        state.received_bytes = state.received_bytes.max(received_bytes);
        state.full_wanted = (state.full_wanted || gap) && !full;
        state.report_wanted |= gap;
        if rescope.is_some() {
            state.rescope = rescope;
            state.switches.pending = true;
        }
        let answer = state.answer(refused);
        drop(state);
        self.signal.raise();
        Ok((answer, news))
    }
}

// === impl State ===

impl State {
    fn answer(&self, statuses_refused: u32) -> v1::ReportResponse {
        v1::ReportResponse { sequence: self.sequence, full_wanted: self.full_wanted, statuses_refused }
    }

    /// The watermarks after a report. What has arrived does not go away again until the scope changes; what is applied is
    /// taken as it is said, also if it is less: something that was an exception may be none any more, and not be done yet.
    fn check(&self, report: &Report, head: Revision) -> Result<Marks, Status> {
        let Marks { received, applied } = report.marks;
        let Switches { told, included, .. } = self.switches;
        if report.scope_changes > told {
            let (told, found) = (told, report.scope_changes);
            return Err(fault::bad("scope_changes", format!("at most {told}, as many as were sent, found {found}")));
        }
        if received > head {
            return Err(fault::bad("received", format!("at most {head}, the newest revision, found {received}")));
        }
        let before = if report.scope_changes > included { Marks::default() } else { self.marks };
        let marks = Marks { received: received.max(before.received), applied };
        if applied > marks.received {
            return Err(fault::bad("applied", format!("at most what was received ({received}), found {applied}")));
        }
        Ok(marks)
    }

    /// The newest end of a group in that span.
    fn newest_sent(&self, after: Revision, to: Revision) -> Option<Revision> {
        self.sent
            .iter()
            .rev()
            .find(|sent| **sent <= to)
            .copied()
            .filter(|sent| *sent > after && *sent > self.floor)
    }
}
