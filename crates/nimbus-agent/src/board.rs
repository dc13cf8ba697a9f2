//! What should be here, what is here, and what to do next.
//!
//! The heart of an agent, without I/O, clock or runtime: changes and the ends of jobs go in, jobs come out.
//!
//! - Per object only the newest version that should be here is kept, and the one that was last applied. A change while a
//!   job runs takes effect when the job has ended.
//! - An object is applied when everything that it needs is applied in its newest version; it is removed when nothing that
//!   is here needs it any more. What waits says for what. What nothing depends on waits for nobody.
//! - One job at a time for each object, looking included.
//! - What fails is tried again until it succeeds or changes, and holds up only what depends on it.
//!
//! Each event costs as much as the objects that it touches have references, however many objects there are, and memory
//! depends on the number of objects and references alone.

mod barrier;
mod begin;
mod counts;
mod finish;
mod job;
mod knots;
mod lanes;
mod links;
mod node;
mod policy;
mod settle;
mod slots;
mod tell;
#[cfg(test)]
mod tests;
mod timers;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
};

use nimbus_client::{Change, Item};
use nimbus_core::{Backoff, Kind, Revision};
use rand::rngs::SmallRng;
use tokio::time::Instant;

pub use self::policy::Replace;
use self::{
    barrier::Barriers,
    knots::Knots,
    lanes::Lanes,
    node::Want,
    slots::{Nodes, Slot},
    timers::Timers,
    watch::Pace,
};
pub(crate) use self::{
    counts::Counts,
    job::{Job, Outcome, Work},
    policy::{Policies, Policy},
    tell::Exceptional,
};

/// What should be here, what is here, and what to do next.
pub(crate) struct Board {
    policies: Policies,
    backoff: Backoff,
    quarantine: Backoff,
    rng: SmallRng,
    nodes: Nodes,
    /// Nodes to look at before the event is over.
    dirty: VecDeque<Slot>,
    lanes: Lanes,
    timers: Timers,
    barriers: Barriers,
    knots: Knots,
    unfinished: BTreeSet<Slot>,
    degraded: BTreeSet<Slot>,
    counts: Counts,
    observing: usize,
    held: bool,
    version: u64,
}

// === impl Board ===

impl Board {
    /// Failures are tried again after `backoff`, panics after `quarantine`.
    pub(crate) fn new(policies: Policies, backoff: Backoff, quarantine: Backoff, rng: SmallRng) -> Self {
        Self {
            policies,
            backoff,
            quarantine,
            rng,
            nodes: Nodes::default(),
            dirty: VecDeque::new(),
            lanes: Lanes::default(),
            timers: Timers::default(),
            barriers: Barriers::default(),
            knots: Knots::default(),
            unfinished: BTreeSet::new(),
            degraded: BTreeSet::new(),
            counts: Counts::default(),
            observing: 0,
            held: false,
            version: 0,
        }
    }

    /// Takes what an agent remembers from before it was restarted. Without `trust`, everything is applied again: nobody
    /// knows whether it has outlived the agent. What had been `started` is applied again in any case.
    pub(crate) fn restore(
        &mut self,
        desired: Vec<Arc<Item>>,
        applied: Vec<Arc<Item>>,
        started: Vec<Arc<Item>>,
        trust: bool,
        now: Instant,
    ) {
        let mut touched = BTreeSet::new();
        for item in desired {
            let slot = self.enter(item.key(), now);
            self.nodes[slot].desired = Some(item);
            touched.insert(slot);
        }
        for item in applied {
            let slot = self.enter(item.key(), now);
            let node = &mut self.nodes[slot];
            (node.applied, node.unproven, node.watch.pace) = (Some(item), !trust, Pace::Soon);
            touched.insert(slot);
        }
        for item in started {
            let slot = self.enter(item.key(), now);
            let node = &mut self.nodes[slot];
            node.removing = node.applied.as_ref().is_some_and(|applied| applied.is_same(&item));
            node.begun = Some(item);
            touched.insert(slot);
        }
        for slot in &touched {
            self.link(*slot, now);
        }
        self.group(touched);
        self.version += 1;
        self.settle(now);
    }

    /// Takes one group of changes, as a whole. `floor` is the watermark before it.
    pub(crate) fn change(&mut self, changes: Vec<Change>, floor: Revision, now: Instant) {
        let mut touched = BTreeSet::new();
        for change in changes {
            let (slot, desired) = match change {
                Change::Put(item) => (self.enter(item.key(), now), Some(item)),
                Change::Delete(key) => match self.nodes.find(&key) {
                    Some(slot) => (slot, None),
                    None => continue,
                },
            };
            if self.set_desired(slot, desired, floor, now) {
                touched.insert(slot);
            }
        }
        if !touched.is_empty() {
            self.group(touched);
            self.version += 1;
            self.settle(now);
        }
    }

    /// While held, nothing begins.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Revisions have lost their meaning: everything that is unfinished has been so from the beginning.
    pub(crate) fn reset_floors(&mut self) {
        for slot in &self.unfinished {
            let node = &mut self.nodes[*slot];
            node.floor = Some(Revision(0));
            if let Some(running) = &mut node.running {
                running.floor = running.floor.map(|_| Revision(0));
            }
        }
        self.version += 1;
    }

    /// Rises with everything that could be told.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether something is being done, or could begin.
    pub(crate) fn is_busy(&self) -> bool {
        self.counts.running > self.observing || (!self.held && !self.lanes.is_idle())
    }

    /// Sets what should be here; `false` if that changes nothing.
    fn set_desired(&mut self, slot: Slot, desired: Option<Arc<Item>>, floor: Revision, now: Instant) -> bool {
        let node = &mut self.nodes[slot];
        let is_same = match (&node.desired, &desired) {
            (Some(old), Some(new)) => old.is_same(new),
            (old, new) => old.is_none() && new.is_none(),
        };
        node.desired = desired;
        if is_same {
            return false;
        }
        (node.trouble, node.in_place) = (None, false);
        let mut since = &mut node.floor;
        if let Some(running) = &mut node.running {
            running.outdated = true;
            if running.task.is_main() {
                since = &mut running.floor;
            }
        }
        *since = Some(since.map_or(floor, |since| since.min(floor)));
        if let Some(group) = node.group.take() {
            self.barriers.leave(group, slot);
        }
        self.set_retry(slot, None);
        self.untie(slot);
        self.link(slot, now);
        self.nodes[slot].grown = true;
        self.mark(slot);
        true
    }

    /// Ties puts and removals of a kind that came together, if their order matters.
    fn group(&mut self, touched: BTreeSet<Slot>) {
        let mut kinds: BTreeMap<Kind, (BTreeSet<Slot>, BTreeSet<Slot>)> = BTreeMap::new();
        for slot in touched {
            self.mark(slot);
            let node = &self.nodes[slot];
            if node.policy.replace == Replace::Independent || node.want() == Want::Nothing {
                continue;
            }
            let (puts, deletes) = kinds.entry(node.key.kind().clone()).or_default();
            if node.desired.is_some() { puts } else { deletes }.insert(slot);
        }
        for (kind, (puts, deletes)) in kinds {
            if puts.is_empty() || deletes.is_empty() {
                continue;
            }
            let members: Vec<_> = puts.iter().chain(&deletes).copied().collect();
            let group = self.barriers.add(self.policies.of(&kind).replace, puts, deletes);
            for slot in members {
                let node = &mut self.nodes[slot];
                (node.group, node.grown) = (Some(group), true);
            }
        }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("counts", &self.counts)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}
