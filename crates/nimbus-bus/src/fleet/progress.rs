//! How far an agent says to be, and what that means for an object.

use std::{collections::BTreeMap, mem};

use nimbus_core::{Generation, Kind, ObjectKey, Revision};
use nimbus_wire::v1::Phase;
use tokio::time::Instant;

use crate::fleet::{advances::Advances, exception::Exception, report::Report};

/// Everything up to here has arrived; everything up to there is applied, but for the exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    pub(crate) received: Revision,
    pub(crate) applied: Revision,
}

/// How far an agent says to be.
#[derive(Debug)]
pub(crate) struct Progress {
    marks: Marks,
    /// The marks are of another scope than the agent has now: they say nothing.
    void: bool,
    pub(crate) exceptions: BTreeMap<ObjectKey, Exception>,
    /// What they take, nearly.
    exception_bytes: usize,
    pub(crate) received: Advances,
    pub(crate) applied: Advances,
}

/// How an agent stands to one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) received: bool,
    pub(crate) verdict: Verdict,
}

/// What has become of a change at an agent. The later ones outweigh the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Applied,
    Degraded,
    Pending,
    Failed,
    /// Failed, and not tried again before the object changes.
    FailedForGood,
}

/// Exceptions by their phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) failed: u32,
    pub(crate) pending: u32,
    pub(crate) degraded: u32,
}

// === impl Marks ===

impl Marks {
    /// How an agent at these marks stands to a change that it is sent at revision `at`.
    ///
    /// Where it is not there yet, only a failure says something, and only once it has received the change: a generation
    /// is no identity, and everything else that it says may be about the version before.
    pub(crate) fn stand(self, at: Revision, generation: Generation, exception: Option<&Exception>) -> Standing {
        let verdict = match exception {
            Some(exception) if self.applied >= at => exception.verdict(),
            Some(exception)
                if self.received >= at && exception.phase == Phase::Failed && exception.generation == generation =>
            {
                exception.verdict()
            }
            None if self.applied >= at => Verdict::Applied,
            _ => Verdict::Pending,
        };
        Standing { received: self.received >= at, verdict }
    }
}

// === impl Exception ===

impl Exception {
    pub(crate) fn verdict(&self) -> Verdict {
        match self.phase {
            Phase::Failed if self.is_final() => Verdict::FailedForGood,
            Phase::Failed => Verdict::Failed,
            Phase::Degraded => Verdict::Degraded,
            Phase::Pending | Phase::Unspecified => Verdict::Pending,
        }
    }
}

// === impl Progress ===

impl Progress {
    /// An agent that has said nothing yet. When it received what is there already will never be known.
    pub(crate) fn new(head: Revision) -> Self {
        Self {
            marks: Marks::default(),
            void: false,
            exceptions: BTreeMap::new(),
            exception_bytes: 0,
            received: Advances::new(head),
            applied: Advances::new(head),
        }
    }

    /// How far the agent is in the scope that it has now.
    pub(crate) fn marks(&self) -> Marks {
        if self.void { Marks::default() } else { self.marks }
    }

    /// The agent says to be here; `void` if it speaks of a scope that it no longer has.
    pub(crate) fn mark(&mut self, marks: Marks, void: bool, now: Instant) {
        (self.marks, self.void) = (marks, void);
        if !void {
            self.received.advance(marks.received, now);
            self.applied.advance(marks.applied, now);
        }
    }

    /// The agent has another scope from now on: what it said is about the old one.
    pub(crate) fn rescope(&mut self, head: Revision) {
        self.void = true;
        (self.received, self.applied) = (Advances::new(head), Advances::new(head));
    }

    /// Whether the marks are of the scope that the agent has now.
    pub(crate) fn is_void(&self) -> bool {
        self.void
    }

    /// The agent comes back and says to hold what there was at `position`: it cannot be further than that.
    pub(crate) fn resume(&mut self, position: Revision) {
        let Marks { received, applied } = self.marks;
        self.marks = Marks { received: received.min(position), applied: applied.min(position) };
    }

    /// How many exceptions there would be after a report.
    pub(crate) fn exceptions_after(&self, report: &Report) -> usize {
        let Report { exceptions, cleared, .. } = report;
        if report.full {
            return exceptions.len();
        }
        let is_over = |key: &&ObjectKey| self.exceptions.contains_key(*key) && !exceptions.contains_key(*key);
        let is_new = |key: &&ObjectKey| !self.exceptions.contains_key(*key);
        self.exceptions.len() + exceptions.keys().filter(is_new).count() - cleared.iter().filter(is_over).count()
    }

    /// What the exceptions take in memory, nearly.
    pub(crate) fn exception_bytes(&self) -> usize {
        self.exception_bytes
    }

    /// The same after a report.
    pub(crate) fn exception_bytes_after(&self, report: &Report) -> usize {
        let Report { exceptions, cleared, .. } = report;
        let new: usize = exceptions.iter().map(|(key, exception)| exception.bytes(key)).sum();
        if report.full {
            return new;
        }
        let old = |key: &ObjectKey| self.exceptions.get(key).map_or(0, |exception| exception.bytes(key));
        let replaced: usize = exceptions.keys().map(old).sum();
        let over: usize = cleared.iter().filter(|key| !exceptions.contains_key(*key)).map(old).sum();
        self.exception_bytes + new - replaced - over
    }

    /// Takes the exceptions that a report tells, and forgets those that it says are over. What a full report replaces is left
    /// in it.
    pub(crate) fn except(&mut self, report: &mut Report) {
        self.exception_bytes = self.exception_bytes_after(report);
        if report.full {
            mem::swap(&mut self.exceptions, &mut report.exceptions);
            return;
        }
        report.cleared.iter().for_each(|key| drop(self.exceptions.remove(key)));
        // One by one: to join the maps would cost what is kept, and not what is reported.
        self.exceptions.extend(mem::take(&mut report.exceptions));
    }

    /// The exceptions of these kinds by their phase.
    pub(crate) fn counts(&self, covers: impl Fn(&Kind) -> bool) -> Counts {
        let mut counts = Counts::default();
        for (_, exception) in self.exceptions.iter().filter(|(key, _)| covers(key.kind())) {
            match exception.phase {
                Phase::Failed => counts.failed += 1,
                Phase::Degraded => counts.degraded += 1,
                Phase::Pending | Phase::Unspecified => counts.pending += 1,
            }
        }
        counts
    }
}
