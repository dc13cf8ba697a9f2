//! How jobs begin.

use nimbus_core::planted::{self, Bug};
use tokio::time::Instant;

use crate::{
    board::{
        Board,
        job::{Job, Work},
        node::{Node, Running, Stage, Task, Want},
        slots::Slot,
        timers::Alarm,
    },
    handler::Reason,
};

// === impl Board ===

impl Board {
    /// Takes what can begin now, at most `room` jobs. Each must be [finished](Board::finish).
    pub(crate) fn take(&mut self, room: usize, now: Instant) -> Vec<Job> {
        self.ring(now);
        let mut jobs = Vec::new();
        if self.held {
            return jobs;
        }
        let total = self.counts.running + room;
        while jobs.len() < room
            && let Some(slot) = self.lanes.next()
        {
            jobs.extend(self.try_begin(slot, now));
        }
        // Looking has the room that is left, and never more than half of it, lest a change that arrives finds none.
        let most = (total / 2).max(1);
        while jobs.len() < room
            && self.observing < most
            && let Some(slot) = self.lanes.next_look()
        {
            jobs.extend(self.try_begin(slot, now));
        }
        jobs
    }

    /// When to call [`Board::take`] again although nothing has happened.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.knots.at).min()
    }

    /// Does what is due.
    fn ring(&mut self, now: Instant) {
        while let Some((slot, alarm)) = self.timers.pop(now) {
            let node = &mut self.nodes[slot];
            match alarm {
                Alarm::Retry => node.retry_at = None,
                Alarm::Look => (node.watch.at, node.watch.due) = (None, true),
                Alarm::Stuck => {
                    if let Some(running) = &mut node.running {
                        running.stuck_at = None;
                    }
                    self.version += 1;
                }
            }
            self.mark(slot);
        }
        self.settle(now);
    }

    /// Begins what a node that stands in a queue wants; nothing, if its group has closed since it went there.
    fn try_begin(&mut self, slot: Slot, now: Instant) -> Option<Job> {
        if self.nodes[slot].stage == Stage::Ready && self.awaits_group(slot) {
            self.mark(slot);
            self.settle(now);
            return None;
        }
        let node = &mut self.nodes[slot];
        let before = node.begun.clone();
        let (task, work, begins) = if node.stage == Stage::Ready { main(node) } else { upkeep(node) };
        let item = match &work {
            Work::Apply { item, .. } | Work::Remove { item, .. } | Work::Observe { item } => item.clone(),
        };
        let key = node.key.clone();
        let mut running = Running { task, item, outdated: false, stuck_at: None, floor: None, before };
        let stuck_at = Some(now + node.policy.stuck_after);
        self.timers.set(slot, Alarm::Stuck, &mut running.stuck_at, stuck_at);
        self.observing += usize::from(task == Task::Observe);
        node.running = Some(running);
        if begins {
            self.link(slot, now);
        }
        self.mark(slot);
        self.settle(now);
        Some(Job { key, work, begins })
    }
}

/// Makes true what should be here.
fn main(node: &mut Node) -> (Task, Work, bool) {
    let attempt = node.attempts();
    if node.want() == Want::Remove {
        let item = node.there().expect("a removal removes something").clone();
        let begins = node.begun.is_none();
        node.begun.get_or_insert_with(|| item.clone());
        node.removing = true;
        let task = if node.desired.is_some() { Task::Clear } else { Task::Remove };
        return (task, Work::Remove { item, attempt }, begins);
    }
    let item = node.desired.clone().expect("what is to be applied is desired");
    let previous = node.applied.clone();
    let is_applied = previous.as_ref().is_some_and(|applied| applied.is_same(&item));
    let reason = match attempt {
        0 if is_applied && node.unproven => Reason::Started,
        0 => Reason::Changed,
        _ => Reason::Retry,
    };
    // Going back to what is applied adds nothing that could be forgotten: what was begun stays marked until it is over.
    let begins = !is_applied && !node.begun.as_ref().is_some_and(|begun| begun.is_same(&item));
    if begins && !planted::is(Bug::ForgetBegun) {
        node.begun = Some(item.clone());
    }
    (Task::Apply, Work::Apply { item, previous, reason, attempt }, begins)
}

/// Keeps true what is here.
fn upkeep(node: &Node) -> (Task, Work, bool) {
    let applied = node.applied.clone().expect("only what is applied is looked at");
    let Some(drift) = &node.watch.drift else { return (Task::Observe, Work::Observe { item: applied }, false) };
    let newest = node.desired.clone().filter(|desired| desired.is_same(&applied));
    let reason = if drift.attempts == 0 { Reason::Drift } else { Reason::Retry };
    let (item, previous) = (newest.unwrap_or_else(|| applied.clone()), Some(applied));
    (Task::Heal, Work::Apply { item, previous, reason, attempt: drift.attempts }, false)
}
