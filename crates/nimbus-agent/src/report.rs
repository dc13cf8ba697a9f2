//! What the bus is told: watermarks, what is an exception to them, and what is over.
//!
//! Everything up to `applied` is applied, but for the exceptions. What has just arrived is no exception: it holds the
//! watermark back, and is done a moment later. What fails, or waits for longer than a moment, is one, so that it holds
//! back nothing but itself.

mod call;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use nimbus_core::{Generation, ObjectKey, Revision};
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;
use tokio::time::Instant;

pub(crate) use self::call::Call;
use crate::{
    board::{Board, Exceptional},
    journal::{Journal, millis},
};

/// What the bus has been told in this session, and what it has not.
#[derive(Debug)]
pub(crate) struct Reporter {
    session: Option<u64>,
    sequence: u64,
    scope_changes: u32,
    /// The next report says everything.
    full: bool,
    /// Exceptions that the bus knows of.
    sent: HashMap<ObjectKey, Gist>,
    watermarks: (Revision, Revision),
    statuses: BTreeMap<ObjectKey, (Generation, Any)>,
    fresh: BTreeSet<ObjectKey>,
    /// Another scope to ask for, until the bus has heard of it.
    rescope: Option<v1::Rescope>,
    /// The report under way asks for it.
    asked: bool,
    leaving: bool,
    /// Lines in one report; fewer after the bus has refused one.
    room: usize,
    /// Something that has just arrived will have lasted for a moment by then.
    look_again: Option<Instant>,
}

/// What makes an exception worth telling again. Ages go on by themselves.
#[derive(Debug, PartialEq)]
struct Gist {
    generation: Generation,
    phase: v1::Phase,
    code: String,
    message: String,
    retryable: bool,
    attempts: u32,
    waits_for: Vec<ObjectKey>,
}

/// What is told one by one, and the watermark that everything else allows.
struct Listed<'a> {
    entries: Vec<Exceptional<'a>>,
    applied: Revision,
    look_again: Option<Instant>,
}

/// Most things are done by then. What is not is worth a line.
const MOMENT: Duration = Duration::from_secs(1);

/// More exceptions than this are not told one by one; the rest holds the watermark back. A bus takes ten times as many.
const MAX_EXCEPTIONS: usize = 1_000;

/// Keys in `waits_for` of one exception; as many as a bus takes.
const MAX_WAITS: usize = 16;

/// Bytes of exceptions, and of statuses, in one report. A bus takes 4 MiB, unless told otherwise.
const MAX_BYTES: usize = 1 << 20;

/// A status that is larger is not sent. A bus takes much less.
const MAX_STATUS: usize = 256 << 10;

// === impl Reporter ===

impl Default for Reporter {
    fn default() -> Self {
        Self {
            session: None,
            sequence: 0,
            scope_changes: 0,
            full: false,
            sent: HashMap::new(),
            watermarks: (Revision::ZERO, Revision::ZERO),
            statuses: BTreeMap::new(),
            fresh: BTreeSet::new(),
            rescope: None,
            asked: false,
            leaving: false,
            room: MAX_EXCEPTIONS,
            look_again: None,
        }
    }
}

impl Reporter {
    /// Whether there is somebody to report to.
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// The last report was taken.
    pub(crate) fn taken(&mut self) {
        self.room = self.room.saturating_mul(2).clamp(1, MAX_EXCEPTIONS);
        if std::mem::take(&mut self.asked) {
            self.rescope = None;
        }
    }

    /// The last report was not taken, or nobody knows: the next one says everything. If it was too much for the bus, the
    /// next one says less, and in the end nothing but the watermark, which everything that is not told holds back.
    pub(crate) fn not_taken(&mut self, too_much: bool) {
        self.full = true;
        self.asked = false;
        if too_much {
            self.room /= 2;
        }
    }

    /// Gives up another scope that the bus will not hear of; `false` if it was not asked for.
    pub(crate) fn give_up_rescope(&mut self) -> bool {
        std::mem::take(&mut self.asked) && self.rescope.take().is_some()
    }

    /// A session has begun, and the bus knows nothing.
    pub(crate) fn begin(&mut self, session: u64) {
        if self.session != Some(session) {
            (self.sequence, self.scope_changes) = (0, 0);
        }
        (self.session, self.full) = (Some(session), true);
    }

    /// The session is over.
    pub(crate) fn end(&mut self) {
        self.session = None;
        // The subscription that comes next asks for the new scope itself.
        (self.rescope, self.asked) = (None, false);
    }

    /// Watermarks begin again, in another scope.
    pub(crate) fn scope_changed(&mut self) {
        self.scope_changes += 1;
    }

    /// The next report says everything.
    pub(crate) fn want_full(&mut self) {
        self.full = true;
    }

    /// The next report asks for another scope.
    pub(crate) fn rescope(&mut self, rescope: v1::Rescope) {
        (self.rescope, self.asked) = (Some(rescope), false);
    }

    /// The next report says that the agent goes for good.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
    }

    /// What a handler said of an object that it applied, or nothing any more.
    pub(crate) fn set_status(&mut self, key: &ObjectKey, status: Option<(Generation, Any)>) {
        match status {
            None => {
                if self.statuses.remove(key).is_some() {
                    // The bus has to hear of its end.
                    self.fresh.insert(key.clone());
                }
            }
            Some(status) if self.statuses.get(key) != Some(&status) => {
                self.statuses.insert(key.clone(), status);
                self.fresh.insert(key.clone());
            }
            Some(_) => {}
        }
    }

    /// The next report; `None` if there is no session, or nothing to say and nobody waits for a sign of life.
    pub(crate) fn compose(
        &mut self,
        board: &Board,
        journal: &mut Journal,
        reached: Revision,
        sign_of_life: bool,
        now: Instant,
    ) -> Option<v1::ReportRequest> {
        let session = self.session?;
        let Listed { entries: listed, applied, look_again } = Listed::of(board, reached, &self.sent, self.room, now);
        self.look_again = look_again;
        let full = self.full;
        let gists: HashMap<ObjectKey, Gist> = listed.iter().map(|entry| (entry.key.clone(), Gist::of(entry))).collect();
        let is_new = |key: &ObjectKey| full || self.sent.get(key) != gists.get(key);
        let exceptions: Vec<_> = listed
            .iter()
            .filter(|entry| is_new(entry.key))
            .map(|entry| exception(entry, now))
            .collect();
        let over = self.sent.keys().filter(|key| !full && !gists.contains_key(*key));
        let cleared: Vec<_> = over.map(ObjectKey::to_wire).collect();
        let news = full
            || sign_of_life
            || self.leaving
            || self.rescope.is_some()
            || self.watermarks != (reached, applied)
            || !exceptions.is_empty()
            || !cleared.is_empty()
            || !self.fresh.is_empty()
            || journal.is_fresh();
        if !news {
            return None;
        }
        if full {
            self.fresh = self.statuses.keys().cloned().collect();
        }
        let statuses = self.take_statuses();
        self.asked = self.rescope.is_some();
        self.sequence += 1;
        (self.full, self.sent, self.watermarks) = (false, gists, (reached, applied));
        Some(v1::ReportRequest {
            session,
            sequence: self.sequence,
            received: reached.0,
            applied: applied.0,
            exceptions,
            cleared,
            full,
            received_bytes: 0,
            rescope: self.rescope.clone(),
            statuses,
            scope_changes: self.scope_changes,
            events: journal.report(full, now),
            leaving: self.leaving,
        })
    }

    /// Whether there is more to say than fitted into the last report.
    pub(crate) fn has_more(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// When there may be something to say although nothing happens.
    pub(crate) fn look_again(&self) -> Option<Instant> {
        self.look_again
    }

    fn take_statuses(&mut self) -> Vec<v1::ObjectStatus> {
        let (mut statuses, mut bytes) = (Vec::new(), 0);
        while statuses.len() < self.room
            && bytes < MAX_BYTES
            && let Some(key) = self.fresh.pop_first()
        {
            // Without a status, it is the end of one.
            let (generation, status) = match self.statuses.get(&key) {
                Some((_, status)) if status.encoded_len() > MAX_STATUS => {
                    tracing::warn!(object = %key, bytes = status.encoded_len(), "status is too large to be reported");
                    continue;
                }
                Some((generation, status)) => (generation.0, Some(status.clone())),
                None => (0, None),
            };
            let status = v1::ObjectStatus { key: Some(key.to_wire()), generation, status };
            bytes += status.encoded_len();
            statuses.push(status);
        }
        statuses
    }
}

// === impl Gist ===

impl Gist {
    fn of(entry: &Exceptional<'_>) -> Self {
        Self {
            generation: entry.generation,
            phase: entry.phase,
            code: entry.code.to_string(),
            message: entry.message.to_string(),
            retryable: entry.retryable,
            attempts: entry.attempts,
            waits_for: entry.waits_for.clone(),
        }
    }
}

// === impl Listed ===

impl<'a> Listed<'a> {
    /// What the bus has been told of stays listed until it is finished, whatever happens to it meanwhile: a watermark
    /// that was given is not taken back.
    fn of(board: &'a Board, reached: Revision, sent: &HashMap<ObjectKey, Gist>, room: usize, now: Instant) -> Self {
        let mut listed = Self { entries: Vec::new(), applied: reached, look_again: None };
        let (known, others): (Vec<_>, Vec<_>) = board.unfinished().partition(|entry| sent.contains_key(entry.key));
        let mut bytes = 0;
        for (entry, is_known) in known
            .into_iter()
            .map(|entry| (entry, true))
            .chain(others.into_iter().map(|entry| (entry, false)))
        {
            let lasts_from = entry.since + MOMENT;
            let is_told = is_known || entry.phase == v1::Phase::Failed || now >= lasts_from;
            if is_told && listed.entries.len() < room && bytes < MAX_BYTES {
                bytes += entry.size();
                listed.entries.push(entry);
                continue;
            }
            listed.applied = listed.applied.min(entry.floor);
            if now < lasts_from {
                listed.look_again = Some(listed.look_again.map_or(lasts_from, |at| at.min(lasts_from)));
            }
        }
        for entry in board.degraded() {
            if listed.entries.len() >= room || bytes >= MAX_BYTES {
                break;
            }
            bytes += entry.size();
            listed.entries.push(entry);
        }
        listed
    }
}

// === impl Exceptional ===

impl Exceptional<'_> {
    /// Bytes in a report, nearly.
    fn size(&self) -> usize {
        let key = |key: &ObjectKey| key.kind().as_str().len() + key.namespace().len() + key.name().len() + 16;
        let waits: usize = self.waits_for.iter().take(MAX_WAITS).map(key).sum();
        key(self.key) + self.code.len() + self.message.len().min(MAX_MESSAGE) + waits
    }
}

fn exception(entry: &Exceptional<'_>, now: Instant) -> v1::Exception {
    v1::Exception {
        key: Some(entry.key.to_wire()),
        generation: entry.generation.0,
        phase: entry.phase.into(),
        code: entry.code.to_string(),
        message: shortened(&entry.message),
        retryable: entry.retryable,
        attempts: entry.attempts,
        age_ms: millis(now.saturating_duration_since(entry.since)),
        retry_in_ms: entry.retry_at.map_or(0, |at| millis(at.saturating_duration_since(now)).max(1)),
        waits_for: entry.waits_for.iter().take(MAX_WAITS).map(ObjectKey::to_wire).collect(),
    }
}

/// A bus keeps no more of a message than this.
const MAX_MESSAGE: usize = 1024;

/// The end of a message says most: commands print their errors last.
pub(crate) fn shortened(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let from = message.ceil_char_boundary(message.len() - MAX_MESSAGE + '…'.len_utf8());
    format!("…{}", &message[from..])
}
