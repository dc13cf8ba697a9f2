//! What is known about one key: why and when it should run, and what stands against it.
//!
//! The rules of the queue for a single key are all here, and know nothing of other keys.

use std::{mem, time::Duration};

use nimbus_core::Failure;
use tokio::time::Instant;

use crate::queue::{
    cause::{Cause, Causes},
    finish::Finish,
    later,
    policy::{Debounce, Policy},
};

/// What is known about one key.
#[derive(Debug, Default)]
pub(crate) struct Case {
    /// For the next run.
    pub(crate) causes: Causes,
    pub(crate) run: Option<Run>,
    pub(crate) hold: Hold,
    /// Failures since the last success or edit.
    pub(crate) attempts: u32,
    /// Panics in a row.
    pub(crate) panics: u32,
    /// Failures since something happened that may have cured them: how far the backoff has grown.
    steps: u32,
    pub(crate) failure: Option<Box<Failure>>,
    /// The earliest time that anything but a burst asks for.
    at: Option<Instant>,
    burst: Option<Burst>,
    /// With a leading debounce: a change before this time is not the first of its burst.
    pub(crate) quiet_until: Option<Instant>,
}

/// What stands against a run. While something does, wishes to run are noted as causes only; when it ends, there is a run
/// for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Hold {
    #[default]
    None,
    /// Nothing asks for a run; whatever does ends this.
    Waiting,
    Backoff(Instant),
    Quarantine(Instant),
    Permanent,
    Poison,
}

/// A run that has not ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) since: Instant,
    pub(crate) causes: Causes,
    due: Instant,
    /// Nobody wants to know how it ends.
    forgotten: bool,
}

/// Changes that wait for their last one.
#[derive(Debug)]
struct Burst {
    first: Instant,
    due: Instant,
}

/// Of a handler that panicked.
const PANIC: &str = "PANIC";

// === impl Case ===

impl Case {
    /// When it should run; `None` if only something new can say so.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.hold {
            Hold::None | Hold::Waiting => self.at.into_iter().chain(self.burst.as_ref().map(|burst| burst.due)).min(),
            Hold::Backoff(until) | Hold::Quarantine(until) => Some(until),
            Hold::Permanent | Hold::Poison => None,
        }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_blank(&self) -> bool {
        self.run.is_none() && self.causes.is_empty()
    }

    /// What has become due stays due, whatever comes before there is room for it.
    pub(crate) fn ripen(&mut self, now: Instant) {
        if self.run.is_none()
            && let Some(due) = self.due().filter(|due| *due <= now)
        {
            (self.at, self.burst, self.hold) = (Some(due), None, Hold::None);
        }
    }

    /// Something has happened.
    pub(crate) fn wake(&mut self, cause: Cause, debounce: Option<Debounce>, now: Instant) {
        self.ripen(now);
        self.causes.insert(cause);
        if self.run.is_none() {
            if cause == Cause::Edited {
                self.forgive();
            }
            if matches!(cause, Cause::Referent | Cause::Manual) {
                self.steps = 0;
            }
        }
        match (self.hold, cause) {
            (Hold::None | Hold::Waiting, _) | (_, Cause::Edited | Cause::Manual) => {}
            // A debounce must not make it later than the backoff would have.
            (Hold::Backoff(until), Cause::Referent) => self.look_at(until),
            _ => return,
        }
        self.hold = Hold::None;
        match debounce.filter(|_| cause.is_debounced()) {
            Some(debounce) => self.debounce(debounce, now),
            None => self.look_at(now),
        }
    }

    /// It should be looked at after a while, if nothing stands against it then.
    pub(crate) fn wake_after(&mut self, delay: Duration, now: Instant) {
        self.ripen(now);
        self.causes.insert(Cause::Requeued);
        if matches!(self.hold, Hold::None | Hold::Waiting) {
            self.look_at(later(now, delay));
        }
    }

    /// Begins a run, which must be due. Returns since when it has been.
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        self.ripen(now);
        let due = self.at.take().unwrap_or(now);
        (self.burst, self.hold) = (None, Hold::None);
        self.run = Some(Run { since: now, causes: mem::take(&mut self.causes), due, forgotten: false });
        due
    }

    /// Ends the run.
    pub(crate) fn finish(&mut self, run: &Run, finish: Finish, policy: &Policy, now: Instant, random: f64) {
        let news = self.causes;
        match finish {
            _ if run.forgotten => self.forgive(),
            Finish::Done => self.forgive(),
            Finish::RequeueAfter(delay) => {
                self.forgive();
                self.wake_after(delay, now);
            }
            Finish::Waiting(deadline) => {
                self.causes = news | run.causes;
                (self.steps, self.panics) = (0, 0);
                if let Some(deadline) = deadline {
                    self.wake_after(deadline, now);
                }
                // A time that was asked for is one more deadline; anything else has woken it already.
                if news.iter().all(|cause| cause == Cause::Requeued) {
                    self.hold = Hold::Waiting;
                }
            }
            Finish::Retry(failure) => {
                self.panics = 0;
                let backoff = || policy.backoff.delay(self.steps, random);
                let until = later(now, failure.delay().unwrap_or_else(backoff));
                self.fail(run, failure, Hold::Backoff(until));
            }
            Finish::Permanent(failure) => {
                self.panics = 0;
                self.fail(run, failure, Hold::Permanent);
            }
            Finish::Panicked(message) => {
                let until = later(now, policy.quarantine.delay(self.panics, random));
                self.panics = self.panics.saturating_add(1);
                let is_poison = self.panics >= policy.poison_after.max(1);
                let hold = if is_poison { Hold::Poison } else { Hold::Quarantine(until) };
                self.fail(run, Failure::new(message).with_code(PANIC), hold);
            }
        }
        // Whatever it was, it was about an older version.
        if news.contains(Cause::Edited) {
            self.forgive();
        }
    }

    /// The run has not been one.
    pub(crate) fn abandon(&mut self, run: &Run) {
        if self.causes.contains(Cause::Edited) || run.forgotten {
            self.forgive();
        }
        if !run.forgotten {
            self.causes = self.causes | run.causes;
            self.look_at(run.due);
        }
    }

    /// Nothing is wanted any more. A run goes on, and whatever comes of it is ignored.
    pub(crate) fn forget(&mut self) {
        let run = self.run.take().map(|run| Run { forgotten: true, ..run });
        *self = Self { run, ..Self::default() };
    }

    /// Counts a failure, and holds the key unless something has come meanwhile that overrules it.
    fn fail(&mut self, run: &Run, failure: Failure, hold: Hold) {
        let news = self.causes;
        self.causes = news | run.causes | Cause::Retried.into();
        self.failure = Some(Box::new(failure));
        self.attempts = self.attempts.saturating_add(1);
        self.steps = self.steps.saturating_add(1);
        let cured = matches!(hold, Hold::Backoff(_)) && news.contains(Cause::Referent);
        if cured || news.contains(Cause::Edited) || news.contains(Cause::Manual) {
            self.steps = 0;
        } else {
            (self.hold, self.at, self.burst) = (hold, None, None);
        }
    }

    fn forgive(&mut self) {
        (self.attempts, self.steps, self.panics, self.failure) = (0, 0, 0, None);
    }

    fn look_at(&mut self, at: Instant) {
        self.at = Some(self.at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Waits for the end of the burst, but never for longer than agreed.
    fn debounce(&mut self, debounce: Debounce, now: Instant) {
        let Debounce { quiet, max_wait, leading } = debounce;
        let leads = leading && self.quiet_until.is_none_or(|until| until <= now);
        if leading {
            self.quiet_until = Some(later(now, quiet));
        }
        match &mut self.burst {
            Some(burst) if burst.due > now => burst.due = later(now, quiet).min(later(burst.first, max_wait)),
            Some(_) => {}
            None if leads => self.look_at(now),
            None if self.at.is_some_and(|at| at <= now) => {}
            None => self.burst = Some(Burst { first: now, due: later(now, quiet.min(max_wait)) }),
        }
    }
}
