//! Decides what one instance should hold, ask for, give back, and no longer touch.

mod answers;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use nimbus_store::Guard;

use crate::instances::{
    call::{Call, Topic},
    config::Settings,
    instance_id::InstanceId,
    post::{Post, Stage},
    shard::Shard,
    view::{Seat, Standing, View},
};

/// Decides what one instance should hold, ask for, give back, and no longer touch.
///
/// It has no clock and does no I/O: every method is told the time, [`Assignment::poll`] says what to ask of the lease
/// table, and [`Assignment::answer`] takes what comes back.
///
/// A shard is acted on only until shortly before its lease would end, counted from before the call that last renewed it
/// was sent. So an instance that cannot reach the table, or was stopped for a while, is out of the way before the table
/// lets others in.
#[derive(Debug)]
pub(crate) struct Assignment {
    settings: Arc<Settings>,
    member: Post,
    shards: Vec<Post>,
    /// Shards to ask for, since the last look.
    wanted: Vec<Shard>,
    others: Vec<InstanceId>,
    in_flight: BTreeMap<Topic, Sent>,
    join_at: Instant,
    look_at: Instant,
    renew_at: Instant,
    release_at: Instant,
    leaving: Option<Leave>,
    /// Terms so far.
    terms: u64,
    trouble: Option<Arc<str>>,
}

/// A call that has not been answered.
#[derive(Debug)]
struct Sent {
    at: Instant,
    guards: Vec<Guard>,
}

/// An instance that stops.
#[derive(Debug, Clone, Copy)]
struct Leave {
    /// When to hand over; until then others learn that they will have to take up something.
    drain_at: Instant,
    /// When to be gone.
    end_at: Instant,
}

/// Leases are asked for one by one; more at a time would only queue at the other end.
const ACQUIRE_AT_ONCE: usize = 16;

/// Up to this part of an interval is left out at random, so that instances that start together do not stay together.
const JITTER: f64 = 0.2;

// === impl Assignment ===

impl Assignment {
    pub(crate) fn new(settings: Arc<Settings>, now: Instant) -> Self {
        let member = Post::new(settings.names.member(&settings.instance));
        let shards = (0..settings.shards)
            .map(|index| Post::new(settings.lease_of(Shard::new(index))))
            .collect();
        Self {
            settings,
            member,
            shards,
            wanted: Vec::new(),
            others: Vec::new(),
            in_flight: BTreeMap::new(),
            join_at: now,
            look_at: now,
            renew_at: now,
            release_at: now,
            leaving: None,
            terms: 0,
            trouble: None,
        }
    }

    /// Lets time pass, and says what to ask of the table now.
    pub(crate) fn poll(&mut self, now: Instant) -> Vec<(Topic, Call)> {
        self.expire(now);
        if self.leaving.is_some_and(|leave| now >= leave.drain_at) {
            self.drain_all();
        }
        let mut calls = Vec::new();
        if self.may_join() && now >= self.join_at {
            self.member.stage = Stage::Acquiring;
            calls.push((Topic::Join, Call::Acquire(self.member.lease.clone())));
        }
        if self.may_renew() && now >= self.renew_at {
            calls.push((Topic::Renew, Call::Renew(self.held())));
        }
        if self.may_release() && now >= self.release_at {
            calls.push((Topic::Release, Call::Release(self.unreleased())));
        }
        if self.may_look() && now >= self.look_at {
            calls.push((Topic::Look, Call::List));
        }
        calls.extend(self.acquire());
        for (topic, call) in &calls {
            let guards = match call {
                Call::Renew(guards) | Call::Release(guards) => guards.clone(),
                Call::Acquire(_) | Call::List => Vec::new(),
            };
            self.in_flight.insert(*topic, Sent { at: now, guards });
        }
        calls
    }

    /// When to poll again, if nothing is answered before; `None` while everything depends on answers.
    pub(crate) fn due(&self) -> Option<Instant> {
        let mut due = self.posts().filter_map(|post| self.ends_at(post)).min();
        let mut at_latest = |at: Instant| due = Some(due.map_or(at, |due| due.min(at)));
        for (may, at) in [
            (self.may_join(), self.join_at),
            (self.may_renew(), self.renew_at),
            (self.may_release(), self.release_at),
            (self.may_look(), self.look_at),
        ] {
            if may {
                at_latest(at);
            }
        }
        if let Some(leave) = self.leaving {
            let drains = self.shards.iter().any(|post| matches!(post.stage, Stage::Held(_)));
            at_latest(if drains { leave.drain_at } else { leave.end_at });
        }
        due
    }

    /// Nothing of a shard runs any more: it can be given back.
    pub(crate) fn drained(&mut self, shard: Shard, number: u64, now: Instant) {
        let post = &mut self.shards[shard.index()];
        if let Stage::Draining(term) = &post.stage
            && term.number == number
        {
            let (token, until) = (term.token, term.renewed_at + self.settings.ttl);
            post.release(token, until);
            self.release_at = now;
        }
    }

    /// Begins to stop: the others are told, and a little later everything is handed over.
    pub(crate) fn leave(&mut self, now: Instant) {
        let notice = if self.others.is_empty() { Duration::ZERO } else { self.settings.notice() };
        self.leaving = Some(Leave { drain_at: now + notice, end_at: now + self.settings.grace });
        self.wanted.clear();
        self.release_at = now;
        if let Some(term) = self.member.term() {
            let (token, until) = (term.token, term.renewed_at + self.settings.ttl);
            self.member.release(token, until);
        }
    }

    /// Whether it has stopped, with everything handed over or not.
    pub(crate) fn has_left(&self, now: Instant) -> bool {
        let idle = |post: &Post| matches!(post.stage, Stage::Absent);
        self.leaving.is_some_and(|leave| now >= leave.end_at || self.posts().all(idle))
    }

    /// What others may see.
    pub(crate) fn view(&self) -> View {
        let Settings { ttl, margin, .. } = *self.settings;
        let seat = |post: &Post| {
            post.term().map(|term| Seat {
                guard: Some(post.guard(term.token)),
                number: term.number,
                since: term.since,
                until: Some(term.until(ttl, margin)),
                draining: matches!(post.stage, Stage::Draining(_)),
            })
        };
        let seats: Vec<_> = self.shards.iter().map(seat).collect();
        let is_member = self.member.term().is_some();
        let standing = match (self.leaving, is_member) {
            (Some(_), _) => Standing::Leaving,
            (None, false) => Standing::Joining,
            (None, true) if seats.iter().any(Option::is_some) => Standing::Active,
            (None, true) => Standing::Standby,
        };
        let mut members = self.others.clone();
        members.extend(is_member.then(|| self.settings.instance.clone()));
        members.sort_unstable();
        View { standing, seats, members, trouble: self.trouble.clone() }
    }

    fn posts(&self) -> impl Iterator<Item = &Post> {
        self.shards.iter().chain([&self.member])
    }

    fn may_join(&self) -> bool {
        self.leaving.is_none() && matches!(self.member.stage, Stage::Absent)
    }

    fn may_renew(&self) -> bool {
        !self.in_flight.contains_key(&Topic::Renew) && self.posts().any(|post| post.term().is_some())
    }

    fn may_release(&self) -> bool {
        !self.in_flight.contains_key(&Topic::Release)
            && self.posts().any(|post| matches!(post.stage, Stage::Releasing { .. }))
    }

    fn may_look(&self) -> bool {
        self.leaving.is_none() && self.member.term().is_some() && !self.in_flight.contains_key(&Topic::Look)
    }

    /// When time alone changes the stage of a post.
    fn ends_at(&self, post: &Post) -> Option<Instant> {
        match &post.stage {
            Stage::Held(term) | Stage::Draining(term) => Some(term.until(self.settings.ttl, self.settings.margin)),
            Stage::Releasing { until, .. } => Some(*until),
            Stage::Absent | Stage::Acquiring => None,
        }
    }

    /// Stops to act on what was not renewed in time, whether the table still has it as ours or not.
    fn expire(&mut self, now: Instant) {
        for index in 0..self.shards.len() {
            if self.ends_at(&self.shards[index]).is_some_and(|end| now >= end) {
                self.shards[index].stage = Stage::Absent;
            }
        }
        if self.ends_at(&self.member).is_some_and(|end| now >= end) {
            self.member.stage = Stage::Absent;
            self.join_at = now;
        }
    }

    fn drain_all(&mut self) {
        for post in &mut self.shards {
            post.drain();
        }
    }

    fn held(&self) -> Vec<Guard> {
        self.posts().filter_map(|post| post.term().map(|term| post.guard(term.token))).collect()
    }

    fn unreleased(&self) -> Vec<Guard> {
        let token = |post: &Post| match post.stage {
            Stage::Releasing { token, .. } => Some(post.guard(token)),
            Stage::Absent | Stage::Acquiring | Stage::Held(_) | Stage::Draining(_) => None,
        };
        self.posts().filter_map(token).collect()
    }

    fn acquire(&mut self) -> Vec<(Topic, Call)> {
        let asked = self.in_flight.keys().filter(|topic| matches!(topic, Topic::Acquire(_))).count();
        let count = ACQUIRE_AT_ONCE.saturating_sub(asked).min(self.wanted.len());
        let mut calls = Vec::with_capacity(count);
        for shard in self.wanted.drain(..count) {
            let post = &mut self.shards[shard.index()];
            if matches!(post.stage, Stage::Absent) {
                post.stage = Stage::Acquiring;
                calls.push((Topic::Acquire(shard), Call::Acquire(post.lease.clone())));
            }
        }
        calls
    }
}
