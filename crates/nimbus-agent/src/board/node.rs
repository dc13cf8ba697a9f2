//! One object: what should be here, what is here, and what is being done about it.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_client::Item;
use nimbus_core::{Failure, ObjectKey, Revision};
use tokio::time::Instant;

use crate::board::{
    barrier::GroupId,
    counts::Share,
    knots::KnotId,
    lanes::Ticket,
    policy::{Policy, Replace},
    slots::Slot,
    watch::Watch,
};

/// One object: what should be here, what is here, and what is being done about it. Or only a name that others refer to.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) key: ObjectKey,
    pub(crate) policy: Arc<Policy>,

    /// What should be here.
    pub(crate) desired: Option<Arc<Item>>,
    /// What the handler last said yes to.
    pub(crate) applied: Option<Arc<Item>>,
    /// What was begun since and has not come to a good end: a newer version, or the removal of the one that is applied.
    /// As long as there is such a thing, what is here is not certain.
    pub(crate) begun: Option<Arc<Item>>,
    /// A removal of it was begun and has not come to a good end.
    pub(crate) removing: bool,
    /// It was applied by another process, and nobody knows whether it still is.
    pub(crate) unproven: bool,

    /// What the desired version needs, sorted.
    pub(crate) needs: Vec<Slot>,
    /// What the versions that are here need, sorted: that cannot go.
    pub(crate) holds: Vec<Hold>,
    /// The reverse of `needs`.
    pub(crate) needed_by: BTreeSet<Slot>,
    /// The reverse of `holds`.
    pub(crate) held_by: BTreeSet<Slot>,
    /// How many of `needs` are not good.
    pub(crate) missing: usize,
    /// How many of `held_by` will not let go.
    pub(crate) keepers: usize,
    /// Whether those that need it can go on, as they were last told.
    pub(crate) good: bool,
    pub(crate) group: Option<GroupId>,
    /// It is applied over an older life of its name, because removing that first would never end.
    pub(crate) in_place: bool,
    pub(crate) knot: Option<KnotId>,
    /// It waits for something that it did not wait for when it was last looked at, and may be part of a knot now.
    pub(crate) grown: bool,

    pub(crate) stage: Stage,
    /// Since when it has been in this stage.
    pub(crate) since: Instant,
    pub(crate) running: Option<Running>,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) trouble: Option<Trouble>,
    /// When to try again; set in the timers as well.
    pub(crate) retry_at: Option<Instant>,
    /// The watermark before the first change that is not finished.
    pub(crate) floor: Option<Revision>,

    /// What the handler said when it applied it.
    pub(crate) remark: Option<Failure>,
    pub(crate) watch: Watch,
    pub(crate) degraded_since: Instant,

    pub(crate) dirty: bool,
    pub(crate) share: Share,
}

/// Something that cannot go as long as this node is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hold {
    pub(crate) on: Slot,
    /// This node will still need it when everything is as it should be.
    pub(crate) keeps: bool,
}

/// What is to be done for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Nothing,
    Apply,
    Remove,
}

/// How far that has come. Looking and healing go on beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is nothing to do.
    Idle,
    /// It can begin.
    Ready,
    Running,
    /// It waits for other nodes.
    Blocked,
    /// It waits for its next attempt.
    Backoff,
    /// It waits for another version.
    Refused,
}

/// A job that is running.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) task: Task,
    pub(crate) item: Arc<Item>,
    /// What should be here has changed since it began.
    pub(crate) outdated: bool,
    /// When it becomes worth telling; set in the timers as well.
    pub(crate) stuck_at: Option<Instant>,
    /// The watermark before the first change since it began.
    pub(crate) floor: Option<Revision>,
    /// What had been begun before it.
    pub(crate) before: Option<Arc<Item>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Apply,
    /// Of an object that is to go.
    Remove,
    /// Of an older life, before the new one is applied.
    Clear,
    /// Applies again what has drifted.
    Heal,
    Observe,
}

/// Why the last attempt at this version failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) failure: Failure,
    pub(crate) panicked: bool,
    pub(crate) attempts: u32,
    /// Since the first of these attempts.
    pub(crate) since: Instant,
}

// === impl Node ===

impl Node {
    pub(crate) fn new(key: ObjectKey, policy: Arc<Policy>, now: Instant) -> Self {
        Self {
            key,
            policy,
            desired: None,
            applied: None,
            begun: None,
            removing: false,
            unproven: false,
            needs: Vec::new(),
            holds: Vec::new(),
            needed_by: BTreeSet::new(),
            held_by: BTreeSet::new(),
            missing: 0,
            keepers: 0,
            good: false,
            group: None,
            in_place: false,
            knot: None,
            grown: false,
            stage: Stage::Idle,
            since: now,
            running: None,
            ticket: None,
            trouble: None,
            retry_at: None,
            floor: None,
            remark: None,
            watch: Watch::default(),
            degraded_since: now,
            dirty: false,
            share: Share::default(),
        }
    }

    /// What a removal would remove.
    pub(crate) fn there(&self) -> Option<&Arc<Item>> {
        self.applied.as_ref().or(self.begun.as_ref())
    }

    /// Whether the machine certainly is as it was last applied, apart from drift.
    pub(crate) fn is_certain(&self) -> bool {
        self.applied.is_some() && self.begun.is_none() && !self.unproven
    }

    /// What is to be done.
    pub(crate) fn want(&self) -> Want {
        let Some(desired) = &self.desired else {
            return if self.there().is_some() { Want::Remove } else { Want::Nothing };
        };
        if self.there().is_some_and(|there| !there.is_same_life(desired)) && !self.replaces_in_place() {
            return Want::Remove;
        }
        let is_same = self.applied.as_ref().is_some_and(|applied| applied.is_same(desired));
        if is_same && self.is_certain() { Want::Nothing } else { Want::Apply }
    }

    /// Whether another life is applied over the old one. Removing that first would never end if others hold on to it.
    fn replaces_in_place(&self) -> bool {
        self.policy.replace == Replace::MakeBeforeBreak || self.in_place || self.keepers > 0
    }

    /// Whether those that need it can go on. What is to go serves until its removal begins: it is here, and nobody will
    /// make it any better.
    pub(crate) fn is_good(&self) -> bool {
        let Some(applied) = &self.applied else { return false };
        match &self.desired {
            None => !self.removing,
            Some(desired) => self.is_certain() && applied.is_same(desired) && !self.watch.is_losing(),
        }
    }

    /// Whether what it needs now it will still need later: it stays, in this life.
    pub(crate) fn stays(&self) -> bool {
        matches!((&self.desired, self.there()), (Some(desired), Some(there)) if desired.is_same_life(there))
    }

    /// Whether looking makes sense.
    pub(crate) fn is_watched(&self) -> bool {
        self.policy.observe_every.is_some() && self.applied.is_some() && self.want() != Want::Remove
    }

    /// Whether others may wait for it: those that need it, those that it holds, or those of its group.
    pub(crate) fn may_be_awaited(&self) -> bool {
        !self.needed_by.is_empty() || !self.holds.is_empty() || self.group.is_some()
    }

    /// How often this version was tried.
    pub(crate) fn attempts(&self) -> u32 {
        self.trouble.as_ref().map_or(0, |trouble| trouble.attempts)
    }

    pub(crate) fn is_degraded(&self) -> bool {
        self.want() == Want::Nothing && self.applied.is_some() && (self.remark.is_some() || self.watch.is_degraded())
    }

    /// Whether nothing would be lost if it were forgotten.
    pub(crate) fn is_empty(&self) -> bool {
        self.desired.is_none()
            && self.there().is_none()
            && self.running.is_none()
            && self.needed_by.is_empty()
            && self.held_by.is_empty()
    }

    pub(crate) fn share(&self) -> Share {
        let failed = self.trouble.is_some() || self.knot.is_some();
        Share {
            desired: self.desired.is_some(),
            applied: self.applied.is_some(),
            unfinished: self.want() != Want::Nothing,
            running: self.running.is_some(),
            ready: self.stage == Stage::Ready && self.running.is_none(),
            waiting: self.stage == Stage::Blocked,
            failed,
            quarantined: self.trouble.as_ref().is_some_and(|trouble| trouble.panicked),
            degraded: self.is_degraded(),
        }
    }
}

// === impl Task ===

impl Task {
    /// Whether it makes true what should be here, rather than keeping it so.
    pub(crate) fn is_main(self) -> bool {
        !matches!(self, Self::Heal | Self::Observe)
    }
}
