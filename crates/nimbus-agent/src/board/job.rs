//! What goes in and out of the board: changes, jobs, and how they ended.

use std::sync::Arc;

use nimbus_client::Item;
use nimbus_core::{Failure, ObjectKey};

use crate::handler::{Observation, Reason, Status};

/// Something to do for one object. Until it is finished, nothing else is done for that object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) key: ObjectKey,
    pub(crate) work: Work,
    /// Whether the item of this job must be durable as *started*, in place of any older one of this key, before the job
    /// runs. An agent that dies in the middle must know that the object is neither as it was nor as it should be. The
    /// mark goes with the next success.
    pub(crate) begins: bool,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    Apply {
        item: Arc<Item>,
        /// What was last applied under this name.
        previous: Option<Arc<Item>>,
        reason: Reason,
        /// How often it was tried before.
        attempt: u32,
    },
    Remove {
        item: Arc<Item>,
        attempt: u32,
    },
    Observe {
        item: Arc<Item>,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Applied(Status),
    Removed,
    Observed(Observation),
    Failed(Failure),
    Panicked(String),
    /// There is no handler that could read it: none was called.
    Refused(Failure),
    /// Cancelled before it came to an end. It runs again.
    Dropped,
}

/// What follows from the end of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finished {
    /// What is applied now, to be made durable; `Some(None)` after a removal. A *started* mark goes with it.
    pub(crate) applied: Option<Option<Arc<Item>>>,
    pub(crate) event: Option<Event>,
}

/// Something that operators should hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The handler panicked on this version, that many times.
    Quarantined { attempts: u32 },
    /// The machine was found otherwise than it was left, that many times in a row.
    Drifted { in_a_row: u32 },
    /// And has been put right.
    Healed { in_a_row: u32 },
}
