//! How a key is, and what is known about it.

use nimbus_core::Failure;
use tokio::time::Instant;

use crate::queue::{cause::Causes, group::Group, lane::Lane};

/// How a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Could run now, if there were room.
    Ready,
    /// Runs at this time: requeued, or until a burst of changes is over.
    Delayed {
        /// The earliest of all times that were asked for.
        until: Instant,
    },
    /// Has failed, and runs again at this time.
    Retrying {
        /// The end of the backoff.
        until: Instant,
    },
    /// Is running.
    Running {
        /// When it was handed out.
        since: Instant,
    },
    /// Waits for something else, and is woken by whatever happens to it.
    Waiting {
        /// When it looks again although nothing has happened.
        until: Option<Instant>,
    },
    /// Has failed for good, until it is edited.
    Failed,
    /// Has panicked, and runs again at this time.
    Quarantined {
        /// The end of the quarantine.
        until: Instant,
    },
    /// Has panicked too often in a row, and waits to be edited. Somebody should look at it.
    Poisoned,
    /// Is paused, and remembers why it should run.
    Paused,
    /// Would run, now or later, but its group is closed.
    Held,
    /// Has nothing to do. That it ran a moment ago is remembered for the sake of the debounce.
    Quiet {
        /// A change before this time waits for the end of the burst.
        until: Instant,
    },
}

/// What is known about one key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct View<'a, K> {
    /// Whose policy it goes by.
    pub lane: Lane,
    /// The key.
    pub key: &'a K,
    /// The group it was added in.
    pub group: Option<Group>,
    /// How it is.
    pub state: State,
    /// Since when it is like that.
    pub since: Instant,
    /// Why it runs, or will; all causes since the last success.
    pub causes: Causes,
    /// How often it has failed since the last success or edit.
    pub attempts: u32,
    /// How often it has panicked in a row.
    pub panics: u32,
    /// The last failure since the last success or edit.
    pub failure: Option<&'a Failure>,
}
