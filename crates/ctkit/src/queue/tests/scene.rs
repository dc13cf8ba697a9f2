//! A queue of one lane, and a clock that stands still.

use std::time::Duration;

use nimbus_core::{Backoff, Failure};
use tokio::time::Instant;

use crate::queue::{Cause, Config, Finish, Job, Lane, Policy, Queue, State, View};

/// A queue of one lane, and a clock that stands still until it is told.
pub(crate) struct Scene {
    pub(crate) queue: Queue<&'static str>,
    pub(crate) lane: Lane,
    pub(crate) start: Instant,
    pub(crate) now: Instant,
}

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Waits of 100 ms that double, and 1,000 ms after panics, of which the third is poison; with a `random` of 1 exactly.
pub(crate) fn policy() -> Policy {
    Policy {
        backoff: Backoff { base: ms(100), max: ms(10_000) },
        quarantine: Backoff { base: ms(1_000), max: ms(100_000) },
        poison_after: 3,
        ..Policy::default()
    }
}

pub(crate) fn failed() -> Finish {
    Finish::Retry(Failure::new("down"))
}

pub(crate) fn refused() -> Finish {
    Finish::Permanent(Failure::new("no such zone"))
}

pub(crate) fn panicked() -> Finish {
    Finish::Panicked("index out of bounds".into())
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::with(Config::default(), policy)
    }

    pub(crate) fn with(config: Config, policy: Policy) -> Self {
        let mut queue = Queue::new(config);
        let (lane, now) = (queue.lane(policy), Instant::now());
        Self { queue, lane, start: now, now }
    }

    /// Makes it so many milliseconds since the start.
    pub(crate) fn at(&mut self, millis: u64) -> &mut Self {
        self.now = self.start + ms(millis);
        self
    }

    pub(crate) fn add(&mut self, key: &'static str, cause: Cause) {
        self.queue.add(self.lane, key, cause, self.now);
    }

    pub(crate) fn add_after(&mut self, key: &'static str, delay: u64) {
        self.queue.add_after(self.lane, key, ms(delay), self.now);
    }

    pub(crate) fn next(&mut self) -> Option<Job<&'static str>> {
        self.queue.next(self.now)
    }

    pub(crate) fn next_key(&mut self) -> Option<&'static str> {
        self.next().map(|job| job.key)
    }

    pub(crate) fn finish(&mut self, key: &'static str, finish: Finish) -> Option<State> {
        self.queue.finish(self.lane, &key, finish, self.now, 1.0).unwrap()
    }

    /// Adds a key, and ends its run like that.
    pub(crate) fn run(&mut self, key: &'static str, cause: Cause, finish: Finish) {
        self.add(key, cause);
        assert_eq!(self.next_key(), Some(key));
        self.finish(key, finish);
    }

    /// Milliseconds from the start to the deadline.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let millis = |at: Instant| u64::try_from(at.duration_since(self.start).as_millis()).unwrap();
        self.queue.deadline().map(millis)
    }

    pub(crate) fn view(&self, key: &'static str) -> View<'_, &'static str> {
        self.queue.get(self.lane, &key).unwrap()
    }
}
