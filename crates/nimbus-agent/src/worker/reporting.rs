//! When the bus is told something.

use std::time::Duration;

use nimbus_wire::v1;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

use crate::{report::Call, worker::Running};

/// The report under way, and the time of the next.
pub(crate) struct Reports {
    pub(crate) call: Call,
    /// There may be something to say from this time on.
    at: Option<Instant>,
    /// Not before this time: the bus did not take the last ones.
    not_before: Instant,
    /// Reports in a row that did not arrive.
    failures: u32,
    /// What the board looked like when it was last reported.
    version: u64,
    /// The next sign of life.
    alive_at: Instant,
    alive_every: Duration,
}

/// What arrives together is mostly applied within this time, and then takes one report instead of two.
const LINGER: Duration = Duration::from_millis(100);

/// Between two reports of a busy agent.
const PACE: Duration = Duration::from_millis(50);

/// After a report that did not arrive; twice as long after each further one, up to about a minute.
const REPORT_AGAIN: Duration = Duration::from_secs(1);
const MAX_DOUBLINGS: u32 = 6;

/// Bookmarks for each sign of life of an agent that has nothing to say.
const BOOKMARKS_PER_SIGN: u32 = 4;

/// Until the bus says how often it sends bookmarks.
const FIRST_SIGN: Duration = Duration::from_secs(60);

/// An agent that stops does not wait for longer than this for its last words to be taken.
const LAST_WORDS: Duration = Duration::from_secs(1);

// === impl Reports ===

impl Reports {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            call: Call::default(),
            at: None,
            not_before: now,
            failures: 0,
            version: 0,
            alive_at: now + FIRST_SIGN,
            alive_every: FIRST_SIGN,
        }
    }

    /// A session has begun: it is told everything at once.
    pub(crate) fn begin(&mut self, bookmark_interval: Duration, now: Instant) {
        self.alive_every = (bookmark_interval * BOOKMARKS_PER_SIGN).max(Duration::from_secs(1));
        (self.not_before, self.failures) = (now, 0);
        self.soon(now);
    }

    /// There may be something to say from `at` on, or earlier.
    pub(crate) fn soon(&mut self, at: Instant) {
        self.at = Some(self.at.map_or(at, |earlier| earlier.min(at)));
    }
}

// === impl Running ===

impl Running {
    /// When a report is due; `None` if there is nobody to report to, or the last one is still on its way.
    pub(crate) fn report_due(&self) -> Option<Instant> {
        if self.reports.call.is_under_way() || !self.reporter.has_session() || self.uplink.client().is_none() {
            return None;
        }
        let times = [self.reports.at, self.reporter.look_again(), Some(self.reports.alive_at)];
        times.into_iter().flatten().min().map(|at| at.max(self.reports.not_before))
    }

    /// There may be something to say: at once if all is done, and in a moment if that may be done by then.
    pub(crate) fn report_soon(&mut self, now: Instant) {
        self.reports.soon(if self.board.is_busy() { now + LINGER } else { now });
    }

    /// Sends a report if it is time for one.
    pub(crate) fn begin_report(&mut self, now: Instant) {
        if self.board.version() != self.reports.version {
            self.report_soon(now);
        }
        if self.report_due().is_none_or(|at| now < at) {
            return;
        }
        let Some(client) = self.uplink.client() else { return };
        let alive = now >= self.reports.alive_at;
        (self.reports.at, self.reports.version) = (None, self.board.version());
        let reached = self.mirror.reached();
        if let Some(report) = self.reporter.compose(&self.board, &mut self.journal, reached, alive, now) {
            self.reports.alive_at = now + self.reports.alive_every;
            self.reports.call.begin(client, report);
        }
    }

    /// Takes note of the answer to a report.
    pub(crate) fn reported(&mut self, answer: Result<v1::ReportResponse, Status>) {
        let now = Instant::now();
        match answer {
            Ok(answer) => {
                self.metrics.reports.inc();
                self.reporter.taken();
                (self.reports.not_before, self.reports.failures) = (now + PACE, 0);
                if answer.statuses_refused > 0 {
                    let statuses = answer.statuses_refused;
                    tracing::warn!(agent.id = %self.settings.id, statuses, "the bus has no room for statuses");
                }
                if answer.full_wanted {
                    self.reporter.want_full();
                }
                if answer.full_wanted || self.reporter.has_more() {
                    self.reports.not_before = now;
                    self.reports.soon(now);
                }
            }
            Err(status) => {
                self.metrics.report_errors.inc();
                tracing::debug!(agent.id = %self.settings.id, %status, "report failed");
                if status.code() == Code::InvalidArgument && self.reporter.give_up_rescope() {
                    tracing::error!(agent.id = %self.settings.id, %status, "the bus refuses the new labels");
                    self.journal.note("LabelsRefused", None, status.message(), now);
                }
                // The bus may have taken it or not: tell everything again.
                self.reporter
                    .not_taken(matches!(status.code(), Code::ResourceExhausted | Code::OutOfRange));
                self.reports.not_before = now + REPORT_AGAIN * 2_u32.pow(self.reports.failures.min(MAX_DOUBLINGS));
                self.reports.failures = self.reports.failures.saturating_add(1);
                self.reports.soon(now);
            }
        }
    }

    /// Tells the bus how it stands, one last time.
    pub(crate) async fn report_last(&mut self) {
        if self.reports.call.is_under_way() {
            match timeout(LINGER, self.reports.call.answer()).await {
                Ok(answer) => self.reported(answer),
                Err(_) => {
                    self.reports.call.give_up();
                    self.reporter.not_taken(false);
                }
            }
        }
        let now = Instant::now();
        self.reports.not_before = now;
        self.reports.at = Some(now);
        self.begin_report(now);
        if self.reports.call.is_under_way() {
            // The bus will see for itself that the agent is gone.
            drop(timeout(LAST_WORDS, self.reports.call.answer()).await);
        }
    }
}
