//! One lease from the point of view of one instance.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use nimbus_core::planted::{self, Bug};
use nimbus_store::Guard;

/// Longer than anything in a simulation, for the bug.
const LONG: Duration = Duration::from_secs(3600);

/// One lease from the point of view of one instance.
///
/// ```text
/// Absent ──▶ Acquiring ──▶ Held ──▶ Draining ──▶ Releasing ──▶ Absent
///   ▲            │          │          │
///   └──refused───┴──lost────┴──lost────┘
/// ```
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) lease: Arc<str>,
    pub(crate) stage: Stage,
    /// The highest token that a call on its way may still give back. Who is given it again cannot rely on it.
    retired: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    Absent,
    Acquiring,
    Held(Term),
    /// Still ours, but nothing new should begin.
    Draining(Term),
    /// Not ours to act on any more; the table is to be told until it answers, or the lease has ended by itself.
    Releasing {
        token: u64,
        until: Instant,
        /// A call that was not answered may still take effect, at any time.
        doubtful: bool,
    },
}

/// From being given a lease to losing it or giving it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) token: u64,
    /// Tells terms with the same token apart.
    pub(crate) number: u64,
    pub(crate) since: Instant,
    /// Before the call was sent, so that the table never counts from an earlier time than we do.
    pub(crate) renewed_at: Instant,
}

// === impl Post ===

impl Post {
    pub(crate) fn new(lease: Arc<str>) -> Self {
        Self { lease, stage: Stage::Absent, retired: None }
    }

    /// What shows that it is ours, while it is.
    pub(crate) fn term(&self) -> Option<&Term> {
        match &self.stage {
            Stage::Held(term) | Stage::Draining(term) => Some(term),
            Stage::Absent | Stage::Acquiring | Stage::Releasing { .. } => None,
        }
    }

    pub(crate) fn guard(&self, token: u64) -> Guard {
        Guard { lease: self.lease.clone(), token }
    }

    /// Moves the end of the term, if it is still the same one.
    pub(crate) fn renewed(&mut self, token: u64, sent_at: Instant) {
        if let Stage::Held(term) | Stage::Draining(term) = &mut self.stage
            && term.token == token
        {
            term.renewed_at = term.renewed_at.max(sent_at);
        }
    }

    /// Lets nothing new begin.
    pub(crate) fn drain(&mut self) {
        if let Stage::Held(term) = &self.stage {
            self.stage = Stage::Draining(term.clone());
        }
    }

    /// Begins to give the lease back. Nobody may act from here on.
    pub(crate) fn release(&mut self, token: u64, until: Instant) {
        let doubtful = self.retired.is_some();
        self.retired = self.retired.max(Some(token));
        self.stage = Stage::Releasing { token, until, doubtful };
    }

    /// The table has taken this token back.
    pub(crate) fn released(&mut self, given: u64) {
        if let Stage::Releasing { token, doubtful, .. } = self.stage
            && token == given
        {
            self.stage = Stage::Absent;
            if !doubtful {
                self.retired = None;
            }
        }
    }

    /// The table has not said whether it took this token back.
    pub(crate) fn not_released(&mut self, given: u64) {
        if let Stage::Releasing { token, doubtful, .. } = &mut self.stage
            && *token == given
        {
            *doubtful = true;
        }
    }

    /// Whether a call on its way may take this token back.
    pub(crate) fn is_retired(&self, token: u64) -> bool {
        self.retired.is_some_and(|retired| token <= retired)
    }
}

// === impl Term ===

impl Term {
    /// When we stop to act, unless it is renewed.
    pub(crate) fn until(&self, ttl: Duration, margin: Duration) -> Instant {
        if planted::is(Bug::OutstayLease) {
            return self.renewed_at + LONG;
        }
        self.renewed_at + (ttl - margin)
    }
}
