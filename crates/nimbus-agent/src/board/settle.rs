//! What follows from a change of one node, for itself and for others.

use nimbus_core::{
    Revision,
    planted::{self, Bug},
};
use rand::RngExt as _;
use tokio::time::Instant;

use crate::board::{
    Board,
    lanes::Lane,
    node::{Stage, Want},
    slots::Slot,
    timers::Alarm,
};

// === impl Board ===

impl Board {
    /// Remembers to look at a node before this event is over.
    pub(crate) fn mark(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.nodes[slot].dirty, true) {
            self.dirty.push_back(slot);
        }
    }

    /// Looks at everything that was marked. The end of every event.
    pub(crate) fn settle(&mut self, now: Instant) {
        loop {
            while let Some(slot) = self.dirty.pop_front() {
                self.evaluate(slot, now);
            }
            for slot in self.barriers.open() {
                let left = self.nodes[slot].group.take_if(|group| !self.barriers.contains(*group));
                self.nodes[slot].grown |= left.is_some();
                self.mark(slot);
            }
            if self.dirty.is_empty() && !self.find_knots(now) {
                return;
            }
        }
    }

    /// Brings everything that is derived from a node up to date. Costs no more than its degree, and never looks further.
    fn evaluate(&mut self, slot: Slot, now: Instant) {
        self.knots.earn();
        let node = &mut self.nodes[slot];
        node.dirty = false;
        if node.good != node.is_good() {
            node.good = !node.good;
            self.tell_referrers(slot);
        }
        let node = &mut self.nodes[slot];
        if node.want() == Want::Nothing {
            node.floor = None;
            if let Some(group) = node.group.take() {
                self.barriers.leave(group, slot);
            }
        } else {
            // Without a change that it could come from, it is from before everything.
            node.floor.get_or_insert(Revision(0));
        }
        self.set_stage(slot, now);
        self.plan_look(slot, now);
        self.queue(slot);
        self.count(slot, now);
        if self.nodes[slot].is_empty() {
            self.nodes.remove(slot);
        }
    }

    /// Those that need it can go on, or cannot any longer.
    fn tell_referrers(&mut self, slot: Slot) {
        let node = &self.nodes[slot];
        let good = node.good;
        for referrer in node.needed_by.iter().copied().collect::<Vec<_>>() {
            let node = &mut self.nodes[referrer];
            if good {
                node.missing -= 1;
            } else {
                node.missing += 1;
                node.grown = true;
            }
            if node.stage == Stage::Blocked {
                self.version += 1;
            }
            self.mark(referrer);
        }
    }

    fn set_stage(&mut self, slot: Slot, now: Instant) {
        let stage = self.stage(slot);
        let node = &mut self.nodes[slot];
        let before = std::mem::replace(&mut node.stage, stage);
        let grown = std::mem::replace(&mut node.grown, false);
        if before != stage {
            node.since = now;
            if before == Stage::Blocked || stage == Stage::Blocked {
                self.version += 1;
            }
        }
        if stage == Stage::Blocked {
            // Nothing that nobody waits for is part of a cycle.
            if (before != stage || grown) && self.nodes[slot].may_be_awaited() {
                self.knots.suspect(slot, now);
            }
        } else if before == Stage::Blocked {
            self.untie(slot);
        }
        let node = &self.nodes[slot];
        if let Some(group) = node.group {
            let panicked = node.trouble.as_ref().is_some_and(|trouble| trouble.panicked);
            let moving = matches!(stage, Stage::Ready | Stage::Running) || (stage == Stage::Backoff && !panicked);
            self.barriers.set_moving(group, slot, moving);
        }
    }

    fn stage(&self, slot: Slot) -> Stage {
        let node = &self.nodes[slot];
        let want = node.want();
        if node.running.as_ref().is_some_and(|running| running.task.is_main()) {
            Stage::Running
        } else if want == Want::Nothing {
            Stage::Idle
        } else if node.trouble.as_ref().is_some_and(|trouble| trouble.failure.is_permanent()) {
            Stage::Refused
        } else if node.retry_at.is_some() {
            Stage::Backoff
        } else if self.awaits_nodes(slot) || self.awaits_group(slot) {
            Stage::Blocked
        } else {
            Stage::Ready
        }
    }

    /// Whether references hold it back.
    pub(crate) fn awaits_nodes(&self, slot: Slot) -> bool {
        let node = &self.nodes[slot];
        match node.want() {
            Want::Nothing => false,
            Want::Apply => node.missing > 0 && !planted::is(Bug::ApplyBeforeReferents),
            Want::Remove => !node.held_by.is_empty() && !planted::is(Bug::RemoveBeforeReferrers),
        }
    }

    /// Whether the order within its group holds it back. What clears the way for a put is not one of the removals.
    pub(crate) fn awaits_group(&self, slot: Slot) -> bool {
        let node = &self.nodes[slot];
        let clears = node.want() == Want::Remove && node.desired.is_some();
        !clears && node.group.is_some_and(|group| self.barriers.holds_up(group, slot))
    }

    fn plan_look(&mut self, slot: Slot, now: Instant) {
        let node = &mut self.nodes[slot];
        let at = match node.policy.observe_every {
            _ if node.running.is_some() => None,
            Some(interval) if node.is_watched() && !node.watch.due => {
                Some(node.watch.at.unwrap_or_else(|| now + node.watch.delay(interval, self.rng.random())))
            }
            _ => None,
        };
        node.watch.due &= node.is_watched() && node.running.is_none();
        if node.watch.at != at {
            self.timers.set(slot, Alarm::Look, &mut node.watch.at, at);
        }
    }

    fn queue(&mut self, slot: Slot) {
        let node = &mut self.nodes[slot];
        let lane = match node.stage {
            _ if node.running.is_some() => None,
            Stage::Ready if node.trouble.is_none() => Some(Lane::Fresh),
            Stage::Ready => Some(Lane::Again),
            _ if !node.watch.due => None,
            _ if node.watch.drift.is_some() => Some(Lane::Again),
            _ => Some(Lane::Look),
        };
        if node.ticket.map(|ticket| ticket.lane) == lane {
            return;
        }
        if let Some(ticket) = node.ticket.take() {
            self.lanes.leave(ticket);
        }
        node.ticket = lane.map(|lane| self.lanes.enter(lane, slot));
    }

    pub(crate) fn count(&mut self, slot: Slot, now: Instant) {
        let node = &mut self.nodes[slot];
        let new = node.share();
        let old = std::mem::replace(&mut node.share, new);
        if old == new {
            return;
        }
        self.counts.replace(old, new);
        if old.unfinished != new.unfinished {
            self.version += 1;
            if new.unfinished {
                self.unfinished.insert(slot)
            } else {
                self.unfinished.remove(&slot)
            };
        }
        if old.degraded != new.degraded {
            self.version += 1;
            node.degraded_since = now;
            if new.degraded {
                self.degraded.insert(slot)
            } else {
                self.degraded.remove(&slot)
            };
        }
    }
}
