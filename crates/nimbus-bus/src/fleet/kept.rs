//! How much is kept of what agents report.

use tonic::Status;

use crate::fault;

/// Bytes that reports take in memory, nearly. Exceptions and statuses have room of their own: who says much about objects
/// that are fine can still say which are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    pub(crate) exceptions: usize,
    pub(crate) statuses: usize,
}

/// Bytes of exceptions that are kept, and as many of statuses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// For one agent.
    pub(crate) one: usize,
    /// For all of them.
    pub(crate) all: usize,
}

/// Exceptions that there is no room for.
#[derive(Debug)]
pub(crate) struct Excess {
    /// By the name that metrics and errors use.
    pub(crate) limit: &'static str,
    most: usize,
    bytes: usize,
}

// === impl Kept ===

impl Kept {
    /// What is left without a part of it.
    pub(crate) fn without(self, part: Self) -> Self {
        Self { exceptions: self.exceptions - part.exceptions, statuses: self.statuses - part.statuses }
    }

    pub(crate) fn with(self, part: Self) -> Self {
        Self { exceptions: self.exceptions + part.exceptions, statuses: self.statuses + part.statuses }
    }
}

// === impl Room ===

impl Room {
    /// What one agent may have if the others have so much.
    pub(crate) fn left(self, others: usize) -> usize {
        self.one.min(self.all.saturating_sub(others))
    }

    /// Whether there is room for so many bytes of exceptions of one agent, which had so many before, if the other agents have so
    /// many. Whoever reports no more than before is always heard.
    pub(crate) fn check(self, before: usize, after: usize, others: usize) -> Result<(), Excess> {
        if after <= before {
            return Ok(());
        }
        if after > self.one {
            return Err(Excess { limit: "report_bytes", most: self.one, bytes: after });
        }
        if others + after > self.all {
            return Err(Excess { limit: "reports_bytes", most: self.all, bytes: others + after });
        }
        Ok(())
    }
}

// === impl Excess ===

impl From<Excess> for Status {
    fn from(excess: Excess) -> Self {
        let Excess { limit, most, bytes } = excess;
        let whose = if limit == "report_bytes" { "one agent" } else { "all agents" };
        let hint = "hint: report fewer exceptions, and a lower watermark";
        fault::full(limit, format!("bytes of exceptions of {whose} are limited to {most}, found {bytes} ({hint})"))
    }
}
