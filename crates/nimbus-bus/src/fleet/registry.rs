//! The registry: every agent that the bus knows, once.
//!
//! Locks are taken in one order: the map, one agent, the order of changes. Nobody waits for anything inside.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use nimbus_core::{AgentId, Kind, Revision};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::time::{Duration, Instant};
use tonic::Status;

use crate::{
    config::Config,
    fault,
    fleet::{
        activity::Activity,
        agent::{Agent, Entry, Opening, Presence, Update},
        kept::{Excess, Kept, Room},
        order::{Changes, Order},
        shape::Shapes,
        statuses::StatusLimits,
        times::{PublishTimes, Published},
    },
    metrics::Metrics,
};

/// Every agent that the bus knows, and what it says.
pub(crate) struct Fleet {
    agents: RwLock<Agents>,
    order: Mutex<Order>,
    shapes: Shapes,
    times: Mutex<PublishTimes>,
    pub(crate) activity: Activity,
    /// Calls that go on.
    watches: AtomicUsize,
    pub(crate) lost_after: Duration,
    forget_after: Duration,
    max_agents: usize,
    max_exceptions: usize,
    statuses: StatusLimits,
    /// What is kept of the reports of all agents, and claimed for those that are being taken. Locked after the entry of an agent,
    /// and only to count: whoever reports much holds up nobody else.
    reported: Mutex<Kept>,
    room: Room,
    metrics: Metrics,
}

/// Agents by their names.
pub(crate) type Agents = BTreeMap<AgentId, Arc<Agent>>;

/// A time that can still be added to a clock.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

// === impl Fleet ===

impl Fleet {
    pub(crate) fn new(config: &Config, metrics: Metrics) -> Self {
        let limits = &config.limits;
        Self {
            agents: RwLock::default(),
            order: Mutex::default(),
            shapes: Shapes::default(),
            times: Mutex::default(),
            activity: Activity::default(),
            watches: AtomicUsize::new(0),
            lost_after: config.lost_after.min(LONGEST),
            // Nobody is forgotten before it is lost.
            forget_after: config.forget_after.max(config.lost_after).min(LONGEST),
            max_agents: limits.agents,
            max_exceptions: limits.exceptions,
            statuses: StatusLimits { count: limits.statuses, bytes: limits.status_bytes, room: limits.report_bytes },
            reported: Mutex::default(),
            room: Room { one: limits.report_bytes, all: limits.reports_bytes },
            metrics,
        }
    }

    /// All agents. While this is held, no agent comes or goes.
    pub(crate) fn agents(&self) -> RwLockReadGuard<'_, Agents> {
        self.agents.read()
    }

    /// The agent of that name.
    pub(crate) fn agent(&self, id: &AgentId) -> Option<Arc<Agent>> {
        self.agents.read().get(id).cloned()
    }

    /// An agent has a session. What is known of it stays, as far as the session goes on from where the last one was.
    pub(crate) fn connect(&self, id: &AgentId, opening: Opening, now: Instant) -> Option<Arc<Agent>> {
        let shape = self.shapes.of(&opening.scope)?;
        // Held to the end, or the agent could be forgotten in between.
        let mut agents = self.agents.write();
        let agent = match agents.get(id).cloned() {
            Some(agent) => {
                let mut entry = agent.entry.lock();
                let mut order = self.order.lock();
                if let Presence::Away(since) = entry.presence {
                    order.settle(id, since);
                }
                entry.version = order.bump(&agent, entry.version);
                drop(order);
                let before = entry.kept();
                entry.reopen(shape, opening, self.statuses, now);
                self.count_reported(before, entry.kept());
                drop(entry);
                agent
            }
            None => {
                let agent = Arc::new(Agent { id: id.clone(), entry: Mutex::new(Entry::new(shape, opening, now)) });
                let mut entry = agent.entry.lock();
                entry.version = self.order.lock().add(&agent);
                drop(entry);
                agents.insert(id.clone(), agent.clone());
                while agents.len() > self.max_agents && self.forget_one(&mut agents) {}
                agent
            }
        };
        drop(agents);
        self.tell();
        Some(agent)
    }

    /// A session of an agent has ended, unless a newer one has taken over.
    pub(crate) fn disconnect(&self, agent: &Arc<Agent>, session: u64, now: Instant) {
        let mut agents = self.agents.write();
        let mut entry = agent.entry.lock();
        if entry.session != session || !matches!(entry.presence, Presence::Connected(_)) {
            return;
        }
        if entry.leaving {
            self.order.lock().remove(&agent.id, entry.version);
            entry.presence = Presence::Forgotten;
            self.count_reported(entry.kept(), Kept::default());
            agents.remove(&agent.id);
        } else {
            let mut order = self.order.lock();
            order.leave(&agent.id, now);
            entry.version = order.bump(agent, entry.version);
            entry.presence = Presence::Away(now);
        }
        drop((entry, agents));
        self.tell();
    }

    /// Takes what an agent says. Returns how many statuses there was no room for.
    pub(crate) fn report(&self, agent: &Arc<Agent>, mut update: Update, now: Instant) -> Result<u32, Status> {
        loop {
            let mut entry = agent.entry.lock();
            if entry.session != update.session {
                return Err(fault::superseded(entry.session));
            }
            if !matches!(entry.presence, Presence::Connected(_)) {
                return Err(Status::not_found(format!("session {:016x} is over", update.session)));
            }
            self.check_exceptions(entry.progress.exceptions_after(&update.report))?;
            let claimed = match self.claim(entry.kept(), entry.kept_after(&update.report)) {
                Ok(claimed) => claimed,
                Err(excess) => {
                    drop(entry);
                    if excess.limit == "reports_bytes" && self.forget_burden() {
                        continue;
                    }
                    self.metrics.refuse(excess.limit);
                    return Err(excess.into());
                }
            };
            let shape = update.rescope.as_ref().and_then(|scope| self.shapes.of(scope));
            entry.version = self.order.lock().bump(agent, entry.version);
            let statuses = StatusLimits { room: claimed.statuses, ..self.statuses };
            let refused = entry.take(&mut update, shape, statuses, now);
            self.count_reported(claimed, entry.kept());
            drop(entry);
            // With it goes what the agent said before, for which nobody need wait.
            drop(update);
            self.activity.tell();
            return Ok(refused);
        }
    }

    /// Claims the room that a report may need, so that others need not wait until it was taken.
    fn claim(&self, before: Kept, most: Kept) -> Result<Kept, Excess> {
        let mut reported = self.reported.lock();
        let others = reported.without(before);
        self.room.check(before.exceptions, most.exceptions, others.exceptions)?;
        let claimed = Kept { statuses: most.statuses.min(self.room.left(others.statuses)), ..most };
        *reported = others.with(claimed);
        Ok(claimed)
    }

    /// Bytes that are kept of what all agents report, of exceptions or statuses, whichever is more.
    pub(crate) fn reported_bytes(&self) -> usize {
        let reported = self.reported.lock();
        reported.exceptions.max(reported.statuses)
    }

    /// What is kept of one agent's reports is no longer what it was.
    fn count_reported(&self, before: Kept, after: Kept) {
        let mut reported = self.reported.lock();
        *reported = reported.without(before).with(after);
    }

    /// Forgets the agent that has been lost for longest of those whose reports take memory. `false` if there is none.
    fn forget_burden(&self) -> bool {
        let mut agents = self.agents.write();
        let burden = self.order.lock().first_burden();
        let Some((since, id)) = burden else { return false };
        self.forget(&mut agents, since, &id);
        drop(agents);
        self.tell();
        true
    }

    /// Refuses more exceptions of one agent than are kept.
    pub(crate) fn check_exceptions(&self, count: usize) -> Result<(), Status> {
        if count <= self.max_exceptions {
            return Ok(());
        }
        self.metrics.refuse("exceptions");
        let message = format!("exceptions of one session are limited to {}, found {count}", self.max_exceptions);
        Err(fault::full("exceptions", message))
    }

    /// Takes note of those who have been away for too long. Everybody who asks does this first.
    pub(crate) fn tick(&self, now: Instant) {
        let mut changed = false;
        loop {
            let away = self.order.lock().first_away(now, self.lost_after);
            let Some((since, id)) = away else { break };
            changed |= self.lose(&id, since);
        }
        if self.order.lock().first_lost(now, self.forget_after).is_some() {
            let mut agents = self.agents.write();
            while self.order.lock().first_lost(now, self.forget_after).is_some() {
                changed |= self.forget_one(&mut agents);
            }
        }
        if changed {
            self.tell();
        }
    }

    /// When the next agent is lost or forgotten.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.order.lock().deadline(self.lost_after, self.forget_after)
    }

    /// Ticks whenever it is time to.
    pub(crate) async fn keep(&self) {
        loop {
            let now = Instant::now();
            self.tick(now);
            // Who leaves from now on is not lost before this.
            let next = now + self.lost_after;
            tokio::time::sleep_until(self.deadline().map_or(next, |deadline| deadline.min(next))).await;
        }
    }

    /// A transaction was published, whose changes are of this kind, or of several.
    pub(crate) fn published(&self, revision: Revision, kind: Option<&Kind>, now: Instant) {
        self.times.lock().record(revision, kind.cloned(), now);
        self.activity.tell();
    }

    /// When a transaction was published, if that is still known.
    pub(crate) fn published_at(&self, revision: Revision) -> Option<Instant> {
        self.times.lock().get(revision).map(|published| published.at)
    }

    /// The same, and of which kind its changes are, if all are of one.
    pub(crate) fn publication(&self, revision: Revision) -> Option<Published> {
        self.times.lock().get(revision).cloned()
    }

    /// The newest transaction whose time is known.
    pub(crate) fn newest_published(&self) -> Option<Revision> {
        self.times.lock().newest()
    }

    /// How many agents are connected, away and lost.
    pub(crate) fn census(&self) -> [usize; 3] {
        self.order.lock().census()
    }

    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.order.lock().version()
    }

    /// At most `max` changes after a version. `None`: something is missing there, start again.
    pub(crate) fn changes(&self, after: u64, max: usize) -> Option<Changes> {
        self.order.lock().after(after, max)
    }

    /// One call more that goes on. Returns how many there are.
    pub(crate) fn watch(&self) -> usize {
        self.watches.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// One call less.
    pub(crate) fn unwatch(&self) -> usize {
        self.watches.fetch_sub(1, Ordering::Relaxed) - 1
    }

    /// An agent is lost, if it has been away since.
    fn lose(&self, id: &AgentId, since: Instant) -> bool {
        let Some(agent) = self.agent(id) else {
            self.order.lock().settle(id, since);
            return false;
        };
        let mut entry = agent.entry.lock();
        let mut order = self.order.lock();
        let is_lost = order.lose(id, since, entry.kept() != Kept::default());
        if is_lost {
            entry.version = order.bump(&agent, entry.version);
        }
        is_lost
    }

    /// Forgets the agent that is missed least. `false` if all are connected.
    fn forget_one(&self, agents: &mut Agents) -> bool {
        let least = self.order.lock().dispensable();
        let Some((since, id)) = least else { return false };
        self.forget(agents, since, &id);
        true
    }

    /// Forgets an agent that has been away since.
    fn forget(&self, agents: &mut Agents, since: Instant, id: &AgentId) {
        let agent = agents.remove(id);
        let mut entry = agent.as_ref().map(|agent| agent.entry.lock());
        if let Some(entry) = &entry {
            self.count_reported(entry.kept(), Kept::default());
        }
        let mut order = self.order.lock();
        order.settle(id, since);
        if let Some(entry) = &mut entry {
            order.remove(id, entry.version);
            entry.presence = Presence::Forgotten;
        }
    }

    fn tell(&self) {
        self.metrics.set_agents(self.census());
        self.activity.tell();
    }
}
