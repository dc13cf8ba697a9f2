//! How runs end.

use std::{
    hash::{BuildHasher, Hash},
    time::Duration,
};

use nimbus_core::Failure;
use tokio::time::Instant;

use crate::queue::{Queue, case::Run, lane::Lane, slots::Slot, state::State};

/// How a run ended. Only a success takes the key out of the queue.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Finish {
    /// Nothing to do until something happens.
    Done,
    /// A success, and worth another look after so long.
    RequeueAfter(Duration),
    /// Failed, and will be tried again: after the time that the failure states, else after the backoff of the lane.
    Retry(Failure),
    /// Failed, and only an edit can cure it.
    Permanent(Failure),
    /// Waits for something else, such as a reference: until it is woken, or for so long.
    Waiting(Option<Duration>),
    /// Panicked, with this message.
    Panicked(String),
}

/// The key has no job that could end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key is not running (hint: a job is finished or abandoned once)")]
pub struct NotRunning;

// === impl Finish ===

/// As the failure says: permanent, or to be tried again.
impl From<Failure> for Finish {
    fn from(failure: Failure) -> Self {
        if failure.is_permanent() { Self::Permanent(failure) } else { Self::Retry(failure) }
    }
}

// === impl Queue ===

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// Takes note of how a job ended, and says how its key is now; `None` if there is nothing left to remember. `random`
    /// is between 0 and 1, for the jitter of the backoff.
    ///
    /// # Errors
    /// If the key is not running.
    pub fn finish(
        &mut self,
        lane: Lane,
        key: &K,
        finish: Finish,
        now: Instant,
        random: f64,
    ) -> Result<Option<State>, NotRunning> {
        let (slot, run) = self.end_run(lane, key)?;
        let policy = &self.lines[usize::from(lane.0)].policy;
        self.entries[slot].case.finish(&run, finish, policy, now, random);
        Ok(self.settle(slot, now))
    }

    /// Takes a job back that has not come to an end: dropped, cancelled, or never begun. It is as if it had not been handed
    /// out, except that the rate limits have counted it.
    ///
    /// # Errors
    /// If the key is not running.
    pub fn abandon(&mut self, lane: Lane, key: &K, now: Instant) -> Result<(), NotRunning> {
        let (slot, run) = self.end_run(lane, key)?;
        self.entries[slot].case.abandon(&run);
        self.settle(slot, now);
        Ok(())
    }

    fn end_run(&mut self, lane: Lane, key: &K) -> Result<(Slot, Run), NotRunning> {
        let slot = self.find(lane, key).ok_or(NotRunning)?;
        let entry = &mut self.entries[slot];
        let run = entry.case.run.take().ok_or(NotRunning)?;
        if let Some(group) = entry.group {
            self.groups.of(group).running -= 1;
        }
        self.running -= 1;
        Ok((slot, run))
    }
}
