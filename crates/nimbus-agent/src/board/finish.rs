//! How jobs end.

use std::time::Duration;

use nimbus_core::{
    Failure, ObjectKey,
    planted::{self, Bug},
};
use rand::RngExt as _;
use tokio::time::Instant;

use crate::{
    board::{
        Board,
        job::{Event, Finished, Outcome},
        node::{Running, Task, Trouble},
        slots::Slot,
        timers::Alarm,
        watch::{Pace, Watch},
    },
    handler::{Observation, Status},
};

/// Of a handler that panicked.
const PANIC: &str = "PANIC";

/// Nobody waits for longer, and clocks can count that far.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

// === impl Board ===

impl Board {
    /// Takes note of how the job of an object ended; `None` if there was none.
    pub(crate) fn finish(&mut self, key: &ObjectKey, outcome: Outcome, now: Instant) -> Option<Finished> {
        let slot = self.nodes.find(key)?;
        let node = &mut self.nodes[slot];
        let mut running = node.running.take()?;
        self.timers.set(slot, Alarm::Stuck, &mut running.stuck_at, None);
        self.observing -= usize::from(running.task == Task::Observe);
        // A change that came while it ran is not finished with it. Clearing the way does not finish anything.
        let ended =
            matches!((running.task, &outcome), (Task::Apply, Outcome::Applied(_)) | (Task::Remove, Outcome::Removed));
        node.floor = if ended { running.floor } else { node.floor.into_iter().chain(running.floor).min() };
        if running.task.is_main() {
            self.version += 1;
        }
        let finished = match (running.task, outcome) {
            (Task::Apply | Task::Heal, Outcome::Applied(status)) => self.applied(slot, &running, status),
            (Task::Remove | Task::Clear, Outcome::Removed) => self.removed(slot),
            (Task::Observe, Outcome::Observed(seen)) => self.observed(slot, &running, seen),
            (Task::Apply, Outcome::Failed(_)) if planted::is(Bug::ForgetFailure) => {
                self.applied(slot, &running, Status::applied())
            }
            (_, Outcome::Refused(failure)) => {
                // Nothing was begun after all.
                self.nodes[slot].begun = running.before.clone();
                self.link(slot, now);
                self.failed(slot, &running, failure.permanent(), false, now)
            }
            (_, Outcome::Failed(failure)) => self.failed(slot, &running, failure, false, now),
            (_, Outcome::Panicked(message)) => {
                self.failed(slot, &running, Failure::new(message).with_code(PANIC), true, now)
            }
            // Whatever else it was, it did not come to its end.
            (task, _) => {
                self.nodes[slot].watch.due = !task.is_main();
                Finished { applied: None, event: None }
            }
        };
        if finished.applied.is_some() {
            self.link(slot, now);
        }
        self.mark(slot);
        self.settle(now);
        Some(finished)
    }

    fn applied(&mut self, slot: Slot, running: &Running, status: Status) -> Finished {
        let node = &mut self.nodes[slot];
        let mut item = running.item.clone();
        if planted::is(Bug::CreditNewer) {
            item = node.desired.clone().unwrap_or(item);
        }
        if status.degraded != node.remark {
            self.version += 1;
        }
        (node.applied, node.begun) = (Some(item.clone()), None);
        (node.removing, node.unproven) = (false, false);
        node.remark = status.degraded;
        // An older version that was healed says nothing about the newer one.
        if running.task == Task::Apply {
            self.timers.set(slot, Alarm::Retry, &mut node.retry_at, None);
            (node.trouble, node.in_place, node.watch.pace) = (None, false, Pace::Spread);
        }
        node.watch.drift = None;
        let healed = running.task == Task::Heal;
        let event = healed.then_some(Event::Healed { in_a_row: node.watch.drifts });
        Finished { applied: Some(Some(item)), event }
    }

    fn removed(&mut self, slot: Slot) -> Finished {
        let node = &mut self.nodes[slot];
        (node.applied, node.begun, node.trouble, node.remark) = (None, None, None, None);
        (node.removing, node.unproven, node.in_place) = (false, false, false);
        let at = node.watch.at;
        node.watch = Watch { at, ..Watch::default() };
        Finished { applied: Some(None), event: None }
    }

    /// What was seen of a version that is not wanted any more is thrown away: it says nothing about the next one.
    fn observed(&mut self, slot: Slot, running: &Running, seen: Observation) -> Finished {
        let node = &mut self.nodes[slot];
        let mut finished = Finished { applied: None, event: None };
        let Some(interval) = node.policy.observe_every.filter(|_| !running.outdated) else { return finished };
        if node.watch.is_degraded() {
            self.version += 1;
        }
        node.watch.pace = Pace::Steady;
        match seen {
            Observation::Unknown => node.watch.errors = 0,
            Observation::InSync => node.watch.in_sync(),
            Observation::Drifted(message) => {
                node.watch.drifted(message, !node.is_certain(), interval, self.rng.random());
                finished.event = Some(Event::Drifted { in_a_row: node.watch.drifts });
            }
        }
        finished
    }

    /// A failure of a version that is not wanted any more says nothing about the next one, which is tried at once.
    fn failed(&mut self, slot: Slot, running: &Running, failure: Failure, panicked: bool, now: Instant) -> Finished {
        let node = &mut self.nodes[slot];
        let mut finished = Finished { applied: None, event: None };
        if running.outdated {
            return finished;
        }
        let attempts = match (running.task, &node.watch.drift) {
            (Task::Observe, _) => {
                node.watch.failed(failure);
                self.version += 1;
                return finished;
            }
            (Task::Heal, drift) => drift.as_ref().map_or(0, |drift| drift.attempts),
            _ => node.attempts(),
        };
        let backoff = if panicked { self.quarantine } else { self.backoff };
        let delay = failure.delay().unwrap_or_else(|| backoff.delay(attempts, self.rng.random())).min(LONGEST);
        if running.task == Task::Heal {
            let interval = node.policy.observe_every.unwrap_or_default();
            node.watch.not_healed(failure, interval, delay);
            self.version += 1;
            return finished;
        }
        let attempts = attempts.saturating_add(1);
        let since = node.trouble.as_ref().map_or(now, |trouble| trouble.since);
        let retry_at = (!failure.is_permanent()).then_some(now + delay);
        node.trouble = Some(Trouble { failure, panicked, attempts, since });
        self.set_retry(slot, retry_at);
        finished.event = panicked.then_some(Event::Quarantined { attempts });
        finished
    }

    pub(crate) fn set_retry(&mut self, slot: Slot, at: Option<Instant>) {
        self.timers.set(slot, Alarm::Retry, &mut self.nodes[slot].retry_at, at);
    }
}
