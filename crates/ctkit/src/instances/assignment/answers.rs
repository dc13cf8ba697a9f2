//! What follows from what the lease table says.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    instances::{
        assignment::{Assignment, JITTER, Sent},
        call::{Answer, Topic},
        config::Settings,
        instance_id::InstanceId,
        lease_names::Purpose,
        plan::{Holder, plan},
        post::{Post, Stage, Term},
        shard::Shard,
    },
    leases::{Acquired, Held},
    source::CommitError,
};

// === impl Assignment ===

impl Assignment {
    /// Takes what the table says to a call, or that it did not say anything; `random` is between 0 and 1.
    pub(crate) fn answer(&mut self, topic: Topic, answer: Result<Answer, CommitError>, now: Instant, random: f64) {
        let Some(sent) = self.in_flight.remove(&topic) else { return };
        self.trouble = answer.as_ref().err().map(|error| error.to_string().into());
        let retry_at = now + jittered(self.settings.retry_after(), random);
        match (topic, answer) {
            (Topic::Join, answer) => {
                self.join_at = retry_at;
                if self.take(None, answer.as_ref().ok(), sent.at, now) {
                    // The first thing to do as a member is to see the others.
                    self.look_at = now;
                }
            }
            (Topic::Acquire(shard), answer) => {
                if !self.take(Some(shard), answer.as_ref().ok(), sent.at, now) {
                    self.look_at = self.look_at.min(now + jittered(self.settings.look_eagerly(), random));
                }
            }
            (Topic::Renew, Ok(Answer::Renewed(lost))) => {
                self.renewed(&sent, &lost);
                self.renew_at = sent.at + jittered(self.settings.renew_every(), random);
            }
            (Topic::Look, Ok(Answer::Listed(leases))) => self.look(&leases, now, random),
            (Topic::Release, Ok(Answer::Released)) => self.each_sent(&sent, Post::released),
            (Topic::Release, _) => {
                self.each_sent(&sent, Post::not_released);
                self.release_at = retry_at;
            }
            (Topic::Renew, _) => self.renew_at = retry_at,
            (Topic::Look, _) => self.look_at = retry_at,
        }
    }

    /// Begins a term, if a lease was given to us and can be relied on; `None` is the member lease.
    fn take(&mut self, shard: Option<Shard>, answer: Option<&Answer>, sent_at: Instant, now: Instant) -> bool {
        let Settings { ttl, margin, .. } = *self.settings;
        if self.posts().all(|post| post.term().is_none()) {
            self.renew_at = sent_at + self.settings.renew_every();
        }
        let post = match shard {
            Some(shard) => &mut self.shards[shard.index()],
            None => &mut self.member,
        };
        post.stage = Stage::Absent;
        let Some(&Answer::Acquired(Acquired { granted: true, lease: Held { token, .. } })) = answer else {
            return false;
        };
        if self.leaving.is_some() || post.is_retired(token) {
            post.release(token, now + ttl);
            self.release_at = now;
            return false;
        }
        self.terms += 1;
        let term = Term { token, number: self.terms, since: now, renewed_at: sent_at };
        if now >= term.until(ttl, margin) {
            return false;
        }
        post.stage = Stage::Held(term);
        true
    }

    fn renewed(&mut self, sent: &Sent, lost: &[Arc<str>]) {
        let lost: HashSet<&Arc<str>> = lost.iter().collect();
        self.each_sent(sent, |post, token| {
            if !lost.contains(&post.lease) {
                post.renewed(token, sent.at);
            } else if post.term().is_some_and(|term| term.token == token) {
                post.stage = Stage::Absent;
            }
        });
    }

    /// Visits the posts that a call was about, with the token that it was about.
    fn each_sent(&mut self, sent: &Sent, mut visit: impl FnMut(&mut Post, u64)) {
        let tokens: HashMap<&Arc<str>, u64> = sent.guards.iter().map(|guard| (&guard.lease, guard.token)).collect();
        for post in self.shards.iter_mut().chain([&mut self.member]) {
            if let Some(token) = tokens.get(&post.lease) {
                visit(post, *token);
            }
        }
    }

    /// Compares what there is with what should be.
    ///
    /// A list may be older than what is known here. That does no harm: nothing is ever taken to be ours because a list
    /// says so, and what is ours is taken to be lost only if somebody was given a higher token.
    fn look(&mut self, leases: &[Held], now: Instant, random: f64) {
        let mut listed: Vec<Option<&Held>> = vec![None; self.shards.len()];
        self.others.clear();
        for lease in leases {
            match self.settings.names.purpose(lease) {
                Some(Purpose::Member(instance)) if instance != self.settings.instance => self.others.push(instance),
                Some(Purpose::Shard(shard)) if shard.index() < listed.len() => listed[shard.index()] = Some(lease),
                _ => {}
            }
        }
        for (post, lease) in self.shards.iter_mut().zip(&listed) {
            if let (Some(term), Some(lease)) = (post.term(), lease)
                && lease.token > term.token
            {
                post.stage = Stage::Absent;
            }
        }
        let mut patience = self.settings.look_every();
        if self.leaving.is_none() && self.member.term().is_some() && self.compare(&listed, now) {
            patience = self.settings.look_eagerly();
        }
        self.look_at = now + jittered(patience, random);
    }

    /// Decides what to ask for and what to hand over; says whether something should be ours that cannot be yet.
    fn compare(&mut self, listed: &[Option<&Held>], now: Instant) -> bool {
        let me = &self.settings.instance;
        let holders: Vec<_> = self.shards.iter().zip(listed).map(|(post, lease)| holder(me, post, *lease)).collect();
        let mut members = self.others.clone();
        members.push(me.clone());
        let should = plan(&members, &holders);

        let mut waiting = false;
        self.wanted.clear();
        for (index, post) in self.shards.iter_mut().enumerate() {
            let mine = should[index].as_ref() == Some(me);
            match (&post.stage, listed[index]) {
                (Stage::Absent, Some(lease)) if *lease.holder != *me.as_str() => waiting |= mine,
                (Stage::Absent, _) if mine => self.wanted.push(Shard::at(index)),
                // It was given to us by a call whose answer was lost, and is not needed any more.
                (Stage::Absent, Some(lease)) => {
                    post.release(lease.token, now + self.settings.ttl);
                    self.release_at = now;
                }
                (Stage::Held(_), _) if !mine => post.drain(),
                (Stage::Draining(_) | Stage::Releasing { .. }, _) => waiting |= mine,
                _ => {}
            }
        }
        waiting
    }
}

/// Who has a shard: we know it best if it is us, else the list does.
fn holder(me: &InstanceId, post: &Post, listed: Option<&Held>) -> Option<Holder> {
    match &post.stage {
        Stage::Held(_) | Stage::Acquiring => Some(Holder { instance: me.clone(), leaving: false }),
        Stage::Draining(_) => Some(Holder { instance: me.clone(), leaving: true }),
        Stage::Releasing { .. } => None,
        Stage::Absent => listed.map(|lease| Holder { instance: lease.holder.clone().into(), leaving: false }),
    }
}

/// A little less than the interval.
fn jittered(interval: Duration, random: f64) -> Duration {
    interval.mul_f64(1.0 - JITTER * random.clamp(0.0, 1.0))
}
