//! How a subscription is answered: delta, unchanged, digest, snapshot, or wait.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use nimbus_core::{AgentId, Buckets, Digest, Kind, Position, PublisherId, Revision};
use nimbus_store::{Cursor, Origin, Piece, Scope, Signal, Viewer, frame};
use nimbus_wire::v1::{self, Mode, frame::Frame};
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fault,
    fleet::Opening,
    identity::Identity,
    inner::Inner,
    session::{Session, Stage},
};

/// A subscription that has been checked, and what it is answered with.
pub(crate) struct Answer {
    pub(crate) inner: Arc<Inner>,
    pub(crate) session: Arc<Session>,
    pub(crate) cursor: Cursor,
    pub(crate) credit: u64,
    /// Frames that go before everything else.
    pub(crate) frames: VecDeque<Bytes>,
    pub(crate) phase: Phase,
    /// Whoever goes on from a position is told once that it has everything, as soon as it has.
    catches_up: bool,
}

/// How far the answer has come.
pub(crate) enum Phase {
    /// Publishers are still refilling what the subscriber may hold.
    Waiting(Box<Offer>),
    /// Its turn for a snapshot comes at this time.
    Queued(Box<Offer>, Instant),
    /// Frames flow.
    Live,
}

/// What the subscriber says to hold.
pub(crate) struct Offer {
    agent: Option<AgentId>,
    /// It holds something, or may.
    holds: bool,
    root: Option<Digest>,
    buckets: Option<Buckets>,
    origins: Vec<Origin>,
    /// Why it cannot simply go on.
    reason: String,
}

/// A snapshot whose turn comes this soon waits on the open stream; for longer, the subscriber is told to come back.
const WAIT_INLINE: Duration = Duration::from_secs(1);

/// What a client may ask for and this bus can do.
const CAPABILITIES: [&str; 2] = ["credit", "rescope"];

// === impl Answer ===

impl Answer {
    /// Checks a request and answers it.
    pub(crate) fn to(inner: Arc<Inner>, identity: &Identity, request: &v1::SubscribeRequest) -> Result<Self, Status> {
        let filter = request.filter.as_ref();
        let scope = inner
            .converter()
            .scope(identity, &request.kinds, filter, &request.agent, &request.agent_labels)?;
        let agent = match &scope.viewer {
            Viewer::Observer => None,
            Viewer::Agent { id, .. } => Some(id.clone()),
        };
        let resume = request.resume.as_ref();
        let origins = resume.map_or(0, |resume| resume.origins.iter().map(|origin| origin.kinds.len().max(1)).sum());
        inner.converter().at_most("origins", origins, inner.config.limits.origins)?;
        let offer = Offer::new(agent.clone(), resume)?;
        let signal = Signal::default();
        let session = inner.sessions.prepare(agent, signal.clone())?;
        let cursor = inner.store.cursor(scope, signal);
        let (credit, frames, phase) = (request.credit_bytes, VecDeque::new(), Phase::Live);
        let mut answer = Self { inner, session, cursor, credit, frames, phase, catches_up: false };
        let position = resume.and_then(|resume| resume.position.as_ref()).map(Position::from);
        // Who is turned away does not end a session that works.
        let resumed = answer.begin(position, offer, &request.capabilities)?;
        let opening = Opening {
            session: answer.session.id,
            scope: answer.cursor.scope().clone(),
            software: request.software.clone(),
            resumed,
            head: answer.inner.store.state().head(),
        };
        answer.inner.sessions.open(&answer.session, opening, Instant::now());
        Ok(answer)
    }

    /// Goes on if what it waits for has come. `None`: still waiting, at most until the given time.
    pub(crate) fn proceed(&mut self) -> Option<Instant> {
        match std::mem::replace(&mut self.phase, Phase::Live) {
            Phase::Live => None,
            Phase::Waiting(offer) if !self.cursor.is_settled(&offer.origins) => {
                self.phase = Phase::Waiting(offer);
                None
            }
            Phase::Waiting(offer) => self.compare(offer),
            Phase::Queued(offer, at) if Instant::now() < at => {
                self.phase = Phase::Queued(offer, at);
                Some(at)
            }
            Phase::Queued(offer, _) => self.compare(offer),
        }
    }

    /// Reads another scope from now on. Who still waits, waits for the new one.
    pub(crate) fn rescope(&mut self, scope: Scope) {
        if matches!(self.phase, Phase::Live) {
            self.cursor.rescope(scope);
            return;
        }
        self.cursor = self.inner.store.cursor(scope, self.session.signal.clone());
        self.push(Piece::ScopeChanged(self.cursor.scope().hash()));
    }

    /// Begins to answer. Says from which revision the subscriber goes on, if it does.
    fn begin(
        &mut self,
        position: Option<Position>,
        mut offer: Offer,
        asked: &[String],
    ) -> Result<Option<Revision>, Status> {
        if let Some(position) = position {
            match self.cannot_resume(position, offer.root) {
                None => {
                    self.welcome(Mode::Delta, "", asked);
                    // If nothing changed, that is now.
                    self.catches_up = !self.bookmark();
                    return Ok(Some(position.revision));
                }
                Some(reason) => offer.reason = reason,
            }
            if self.is_of_this_history(position) {
                // What it holds comes from this bus, which has forgotten nothing since: nobody has to sync it again.
                offer.origins.clear();
            }
        }
        if offer.holds && !self.cursor.is_settled(&offer.origins) {
            let why = self.missing(&offer.origins);
            self.welcome(Mode::Waiting, &why, asked);
            self.enter(Phase::Waiting(Box::new(offer)));
            return Ok(None);
        }
        if let Some(root) = offer.root.filter(|_| offer.holds)
            && self.cursor.is_equal(root)
        {
            self.welcome(Mode::Unchanged, &offer.reason, asked);
            self.bookmark();
            return Ok(None);
        }
        match self.ask_for_turn(&offer) {
            Ok(()) => self.snapshot(&offer, asked),
            Err(wait) if wait <= WAIT_INLINE => {
                self.welcome(Mode::Waiting, "waiting for its turn", asked);
                self.enter(Phase::Queued(Box::new(offer), Instant::now() + wait));
            }
            Err(wait) => {
                self.inner.metrics.refuse("snapshot_rate");
                return Err(fault::later("too many snapshots at once: come back when it is your turn", wait));
            }
        }
        Ok(None)
    }

    /// Compares what the subscriber holds with what there is now, and sends what differs.
    fn compare(&mut self, offer: Box<Offer>) -> Option<Instant> {
        self.enter(Phase::Live);
        if let Some(root) = offer.root.filter(|_| offer.holds)
            && self.cursor.is_equal(root)
        {
            self.welcome(Mode::Unchanged, &offer.reason, &[]);
            self.bookmark();
            return None;
        }
        match self.ask_for_turn(&offer) {
            Ok(()) => {
                self.snapshot(&offer, &[]);
                None
            }
            Err(wait) => {
                let at = Instant::now() + wait;
                self.enter(Phase::Queued(offer, at));
                Some(at)
            }
        }
    }

    /// The answer has come so far.
    fn enter(&mut self, phase: Phase) {
        self.session.set_stage(match &phase {
            Phase::Waiting(_) => Stage::Waiting,
            Phase::Queued(..) => Stage::Queued,
            Phase::Live => Stage::Live,
        });
        self.phase = phase;
    }

    fn ask_for_turn(&mut self, offer: &Offer) -> Result<(), Duration> {
        let (_, bytes) = self.cursor.estimate(offer.buckets.as_ref());
        let turn = self.inner.admission.lock().ask(offer.agent.as_ref(), bytes, Instant::now());
        if turn.is_ok() {
            self.inner.metrics.snapshot_bytes.inc_by(bytes);
        }
        turn
    }

    fn snapshot(&mut self, offer: &Offer, asked: &[String]) {
        let piece = self.cursor.begin_snapshot(offer.buckets.as_ref(), offer.origins.clone());
        let mode = if offer.buckets.is_some() { Mode::Digest } else { Mode::Snapshot };
        self.welcome(mode, &offer.reason, asked);
        self.push(piece);
    }

    /// Why the subscriber cannot go on from its position; `None` if it can, and then it does.
    fn cannot_resume(&mut self, position: Position, root: Option<Digest>) -> Option<String> {
        let state = self.inner.store.state();
        if position.epoch != state.epoch() {
            return Some("another epoch".to_owned());
        }
        if position.scope != self.cursor.scope().hash() {
            return Some("another scope".to_owned());
        }
        if position.revision == Revision::ZERO {
            // From here, the changes would be a snapshot that nobody admitted.
            return Some("no revision was reached yet".to_owned());
        }
        if position.revision > state.head() {
            return Some(format!("revision {} is above the newest, {}", position.revision, state.head()));
        }
        if self.cursor.resume(position.revision, root) {
            return None;
        }
        if position.revision < state.horizon() {
            return Some(format!("revision {} is before the horizon, {}", position.revision, state.horizon()));
        }
        Some(format!("digest or history differs at revision {}", position.revision))
    }

    /// Whether the subscriber held exactly what this collection did, if only in another scope.
    fn is_of_this_history(&self, position: Position) -> bool {
        let state = self.inner.store.state();
        position.epoch == state.epoch() && (Revision(1)..=state.head()).contains(&position.revision)
    }

    /// What a waiting subscriber waits for, beside the kinds that are incomplete.
    fn missing(&self, origins: &[Origin]) -> String {
        let state = self.inner.store.state();
        let missing = origins
            .iter()
            .filter(|origin| !state.has_synced(origin) && state.is_complete(&origin.kind));
        let missing: Vec<String> =
            missing.map(|origin| format!("{} by {}", origin.kind, origin.manager)).take(3).collect();
        if missing.is_empty() { String::new() } else { format!("no sync yet of {}", missing.join(", ")) }
    }

    fn welcome(&mut self, mode: Mode, reason: &str, asked: &[String]) {
        let inner = &self.inner;
        let state = inner.store.state();
        let scope = self.cursor.scope();
        let revision = if mode == Mode::Waiting { Revision::ZERO } else { state.head() };
        let position = Position { epoch: state.epoch(), revision, scope: scope.hash() };
        inner.metrics.answer(mode);
        tracing::debug!(
            agent.id = self.session.agent.as_ref().map(tracing::field::display),
            session = format_args!("{:016x}", self.session.id),
            mode = mode.as_str_name(),
            reason,
            "subscribed"
        );
        let welcome = v1::Welcome {
            session: self.session.id,
            position: Some(position.into()),
            mode: mode.into(),
            reason: reason.to_owned(),
            incomplete_kinds: state.incomplete_kinds(scope).iter().map(ToString::to_string).collect(),
            bookmark_interval_ms: u32::try_from(inner.config.bookmark_interval.as_millis()).unwrap_or(u32::MAX),
            capabilities: asked.iter().filter(|name| CAPABILITIES.contains(&name.as_str())).cloned().collect(),
        };
        self.control(Frame::Welcome(welcome));
    }

    /// Tells a subscriber that went on from a position that it has everything, if it has, and was not told yet.
    pub(crate) fn has_caught_up(&mut self) -> bool {
        self.catches_up = self.catches_up && !self.bookmark();
        !self.frames.is_empty()
    }

    /// Tells the subscriber that it has everything, if it has.
    pub(crate) fn bookmark(&mut self) -> bool {
        let Some(mark) = self.cursor.bookmark() else { return false };
        let bookmark = v1::Bookmark {
            revision: mark.revision.0,
            digest: mark.digest.as_bytes().to_vec().into(),
            objects: mark.objects,
            publishers: self.inner.bookmark_ages(self.cursor.scope()),
        };
        self.control(Frame::Bookmark(bookmark));
        true
    }

    /// Puts a piece of the cursor into the frames to be sent.
    pub(crate) fn push(&mut self, piece: Piece) {
        let notice = |notice| Frame::Notice(v1::Notice { notice: Some(notice) });
        let frame = match piece {
            Piece::Frame(bytes) => {
                self.inner.metrics.sent_batches.inc();
                self.frames.push_back(bytes);
                return;
            }
            Piece::SnapshotBegin { buckets, objects, bytes } => {
                let buckets = if buckets == nimbus_core::BucketSet::ALL { &[][..] } else { buckets.as_bytes() };
                Frame::SnapshotBegin(v1::SnapshotBegin { buckets: buckets.to_vec().into(), objects, bytes })
            }
            Piece::SnapshotEnd(mark) => Frame::SnapshotEnd(v1::SnapshotEnd {
                revision: mark.revision.0,
                objects: mark.objects,
                digest: mark.digest.as_bytes().to_vec().into(),
            }),
            Piece::Restarted => {
                self.inner.metrics.restarts.inc();
                notice(v1::notice::Notice::GroupRestarted(v1::GroupRestarted {}))
            }
            Piece::ScopeChanged(scope) => {
                self.session.switched(self.inner.store.state().head());
                notice(v1::notice::Notice::ScopeChanged(v1::ScopeChanged { scope: scope.0 }))
            }
            _ => return,
        };
        self.control(frame);
    }

    /// Puts a frame of this subscriber's own into the frames to be sent.
    pub(crate) fn control(&mut self, frame: Frame) {
        self.frames.push_back(frame::message(&v1::Frame { frame: Some(frame) }));
    }
}

// === impl Offer ===

impl Offer {
    fn new(agent: Option<AgentId>, resume: Option<&v1::Resume>) -> Result<Self, Status> {
        let Some(resume) = resume else {
            let (root, buckets) = (None, None);
            return Ok(Self { agent, holds: false, root, buckets, origins: Vec::new(), reason: String::new() });
        };
        let root = match &*resume.root {
            [] => None,
            root => Some(
                Digest::from_slice(root)
                    .ok_or_else(|| fault::bad("resume.root", format!("16 bytes, found {}", root.len())))?,
            ),
        };
        let buckets = match &*resume.buckets {
            [] => None,
            buckets => Some(Buckets::from_slice(buckets).ok_or_else(|| {
                fault::bad("resume.buckets", format!("{} bytes, found {}", Buckets::WIRE_LEN, buckets.len()))
            })?),
        };
        if let (Some(root), Some(buckets)) = (root, &buckets)
            && buckets.root() != root
        {
            return Err(fault::bad("resume.buckets", "256 digests whose XOR is resume.root"));
        }
        let origins = origins(&resume.origins)?;
        Ok(Self { agent, holds: true, root, buckets, origins, reason: String::new() })
    }
}

fn origins(origins: &[v1::Origin]) -> Result<Vec<Origin>, Status> {
    let mut all = Vec::new();
    for (at, origin) in origins.iter().enumerate() {
        let path = format!("resume.origins[{at}]");
        let manager = PublisherId::new(&origin.manager);
        let manager = manager.map_err(|error| fault::field(&format!("{path}.manager"), &error))?;
        if origin.kinds.is_empty() {
            return Err(fault::bad(&format!("{path}.kinds"), "the kinds of the objects held from this manager"));
        }
        for kind in &origin.kinds {
            let kind = Kind::new(kind).map_err(|error| fault::field(&format!("{path}.kinds"), &error))?;
            all.push(Origin { manager: manager.clone(), kind });
        }
    }
    Ok(all)
}
