//! From the end of a reaction to what follows from it.

use std::sync::Arc;

use nimbus_core::{
    ObjectKey,
    planted::{self, Bug},
};
use nimbus_store::{Draft, Record};
use rand::RngExt as _;
use tokio::time::Instant;

use crate::{
    action::Next,
    context::{Edit, Wishes},
    controller::Deletion,
    engine::{
        Engine,
        run::{Ending, Finished},
        sending::{Delivered, Staged},
        starting::Sort,
        station::{Known, StationId},
        writeback::{Memory, StatusWish},
    },
    few::Few,
    queue::{Cause, Finish, Lane},
    standing::{self, Code, Ready},
};

// === impl Engine ===

impl Engine {
    /// A reaction is over.
    pub(crate) fn finished(&mut self, finished: Finished, now: Instant) {
        let Finished { lane, key, sort, record, children, wishes, ending, tenure } = finished;
        let station = self.station_of(lane);
        if tenure.is_over() {
            // Nothing comes of it, but that the object can be looked at again, if it is ours again.
            return self.give_back(station, &key, now);
        }
        self.adopt(station, &key, now);
        let at = &mut self.stations[station.0];
        if at.rounds.is_some()
            && let Some(known) = at.known.get_mut(&key)
        {
            known.running = false;
        }
        if let Some(told) = at.telling.remove(&key)
            && !matches!(ending, Ending::Returned(Ok(_)))
        {
            // Whatever else has come meanwhile, this was not heard.
            at.news.entry(key.clone()).or_default().extend(told);
        }
        match ending {
            Ending::GivenUp => self.give_back(station, &key, now),
            Ending::Panicked(message) => {
                tracing::error!(object = %key, generation = %record.generation(), message, "reactor panicked");
                self.fail(station, &key, &record, Finish::Panicked(message), wishes, now);
            }
            Ending::Returned(Err(failure)) => {
                self.fail(station, &key, &record, Finish::from(failure), wishes, now);
            }
            Ending::Returned(Ok(action)) => match (sort, action.0) {
                (Sort::Status, next) => self.heard(station, &key, &record, &next, wishes, now),
                (Sort::Release, next) => self.released(station, &key, &record, &next, now),
                (Sort::Apply, Next::WaitFor(missing)) => self.wait(station, &key, &record, &missing, wishes, now),
                (Sort::Apply, next) => self.publish(station, (key, record), children, next, wishes, now),
                (sort, _) => self.withdraw(station, &key, record, sort, &wishes.kept, now),
            },
        }
    }

    fn publish(
        &mut self,
        station: StationId,
        (key, record): (ObjectKey, Arc<Record>),
        children: Few<Draft>,
        next: Next,
        wishes: Wishes,
        now: Instant,
    ) {
        let at = &mut self.stations[station.0];
        let shard = at.shard_of(&key);
        let of = &mut at.shards[shard];
        let staged = (of.desk().common.check(&children))
            .and_then(|()| of.ledger.lock().stage(&key, &record, children, &mut of.batch.steps));
        match staged {
            Ok(steps) => {
                let staged = Staged { key, record, sort: Sort::Apply, next, wishes, steps };
                self.stage(station, shard, staged, now);
            }
            Err(failure) => self.fail(station, &key, &record, Finish::from(failure), wishes, now),
        }
    }

    /// It went well, and is published.
    pub(crate) fn succeed(&mut self, station: StationId, delivered: Delivered, now: Instant) {
        let Delivered { key, record, sort, next, wishes, children, .. } = delivered;
        if !matches!(next, Next::Done | Next::Ignored) {
            self.adopt(station, &key, now);
        }
        let at = &mut self.stations[station.0];
        let lane = at.lane;
        match sort {
            Sort::Apply => {
                let flown = at.land(&key, &mut self.queue);
                let known = at.known.entry(key.clone()).or_default();
                if let Some(attempt) = flown {
                    (known.round, known.begun) = (known.round.wrapping_add(1), attempt);
                }
                if known.acked.is_none() || !planted::is(Bug::StaleOld) {
                    known.acked = Some(record.clone());
                }
                known.tried = None;
                at.references.declare(&key, wishes.references.iter().cloned(), now);
                self.remember(station, &key, Some(record.clone()));
                let ready = Ready::new(Code::Reconciled, "", record.generation());
                self.say(station, &key, &record, wishes.status, Some(ready));
                let finish = match next {
                    Next::RequeueAfter(delay) => Finish::RequeueAfter(delay),
                    _ => Finish::Done,
                };
                if flown.is_some() {
                    self.look_for_drained(station, &key, now);
                    self.close_if_booted(station, self.stations[station.0].shard_of(&key));
                } else {
                    self.end(station, lane, &key, finish, now);
                }
                self.wake_for_news(station, &key, now);
                if let Some(rounds) = &mut self.stations[station.0].rounds {
                    rounds.plan(&key, now, self.rng.random());
                }
            }
            Sort::Delete | Sort::Withdraw | Sort::Recreate => {
                let at = &self.stations[station.0];
                let newest = at.find(&key);
                let marked = |record: &Arc<Record>| {
                    record.is_deleting() && at.finalizer.as_ref().is_some_and(|name| record.finalizers().contains(name))
                };
                let stays = newest.as_ref().is_some_and(|newest| sort != Sort::Recreate && marked(newest));
                let mut gone: Vec<_> = children.into_iter().map(|child| child.key).collect();
                if stays && at.deletion == Deletion::AfterAgents {
                    // What is remembered says for what to wait, whoever withdrew it, until there is nothing to wait for.
                    gone.extend(self.remembered_children(station, &key));
                } else {
                    self.remember(station, &key, None);
                }
                let at = &mut self.stations[station.0];
                let again = |known: &Known| planted::is(Bug::DeleteTwice) && known.round % 2 == 1;
                match newest {
                    None if sort == Sort::Delete && at.known.get(&key).is_some_and(again) => {
                        self.queue.add_in(at.group_of(&key), lane, key.clone(), Cause::Requeued, now);
                    }
                    None => at.forget(&key),
                    Some(_) if stays => {
                        let known = at.known.entry(key.clone()).or_default();
                        known.acked = None;
                        known.let_go(gone);
                        self.queue.add_in(at.group_of(&key), lane, key.clone(), Cause::Requeued, now);
                    }
                    Some(_) => {
                        at.forget(&key);
                        self.queue.add_in(at.group_of(&key), lane, key.clone(), Cause::Edited, now);
                    }
                }
                self.end(station, lane, &key, Finish::Done, now);
            }
            Sort::Status | Sort::Release => {}
        }
        self.looked_at(station, &key);
    }

    /// It did not go well. What was published before stays.
    pub(crate) fn fail(
        &mut self,
        station: StationId,
        key: &ObjectKey,
        record: &Arc<Record>,
        finish: Finish,
        wishes: Wishes,
        now: Instant,
    ) {
        let (code, message) = match &finish {
            Finish::Retry(failure) | Finish::Permanent(failure) => (Code::Failed, failure.to_string()),
            Finish::Panicked(message) => (Code::Quarantined, message.clone()),
            _ => return,
        };
        tracing::info!(object = %key, generation = %record.generation(), message, "reaction failed");
        let ready = Ready::new(code, message, record.generation());
        self.say(station, key, record, wishes.status, Some(ready));
        let lane = self.stations[station.0].lane;
        let is_missed = matches!(finish, Finish::Retry(_)) && self.is_missed(station, key, now);
        self.end(station, lane, key, finish, now);
        if !is_missed {
            self.looked_at(station, key);
        }
    }

    fn wait(
        &mut self,
        station: StationId,
        key: &ObjectKey,
        record: &Arc<Record>,
        missing: &[ObjectKey],
        wishes: Wishes,
        now: Instant,
    ) {
        let there = |key: &ObjectKey| self.snapshot(key.kind()).get(key).is_some();
        let references = &self.stations[station.0].references;
        // Whoever waited for them already is told of each change, and wants more of them than that they exist.
        let is_told = references.lock().awaits(key, missing);
        references.wait_for(key, wishes.references.iter().cloned(), missing.iter().cloned(), now);
        // They may have come meanwhile.
        let satisfied = !is_told && references.lock().satisfied(key, there);
        let absent: Vec<_> = missing.iter().filter(|key| !there(key)).collect();
        let awaited = if absent.is_empty() { missing.iter().collect() } else { absent };
        let awaited: Vec<_> = awaited.into_iter().map(ToString::to_string).collect();
        let message = format!("waits for {}", awaited.join(", "));
        let ready = Ready::new(Code::Waiting, message, record.generation());
        self.say(station, key, record, wishes.status, Some(ready));
        let lane = self.stations[station.0].lane;
        self.end(station, lane, key, Finish::Waiting(None), now);
        if satisfied {
            let group = self.stations[station.0].group_of(key);
            self.queue.add_in(group, lane, key.clone(), Cause::Referent, now);
        }
        self.looked_at(station, key);
    }

    fn heard(
        &mut self,
        station: StationId,
        key: &ObjectKey,
        record: &Arc<Record>,
        next: &Next,
        wishes: Wishes,
        now: Instant,
    ) {
        if *next == Next::Ignored {
            // The reactor has no ear for agents, and never will.
            let at = &mut self.stations[station.0];
            at.listens = false;
            at.news.clear();
        }
        let ready = Ready::new(Code::Reconciled, "", record.generation());
        self.say(station, key, record, wishes.status, Some(ready));
        let lane = self.stations[station.0].lane;
        let finish = match next {
            Next::RequeueAfter(delay) => Finish::RequeueAfter(*delay),
            _ => Finish::Done,
        };
        self.end(station, lane, key, finish, now);
    }

    fn released(&mut self, station: StationId, key: &ObjectKey, record: &Arc<Record>, next: &Next, now: Instant) {
        let at = &mut self.stations[station.0];
        let lane = at.lane;
        let finish = match next {
            Next::RequeueAfter(delay) => {
                let ready = Ready::new(Code::Deleting, "waits for agents to remove it", record.generation());
                self.say(station, key, record, Vec::new(), Some(ready));
                Finish::RequeueAfter(*delay)
            }
            _ => {
                at.forget(key);
                self.remember(station, key, None);
                Finish::Done
            }
        };
        self.end(station, lane, key, finish, now);
        self.looked_at(station, key);
    }

    /// Puts into the status what is to be said of an object.
    pub(crate) fn say(
        &mut self,
        station: StationId,
        key: &ObjectKey,
        record: &Arc<Record>,
        edits: Vec<Edit>,
        ready: Option<Ready>,
    ) {
        let at = &mut self.stations[station.0];
        let ready = ready.filter(|_| at.tells);
        if self.dry_run || (edits.is_empty() && ready.is_none()) {
            return;
        }
        let shard = at.shard_of(key);
        let mut wish = if edits.is_empty() {
            StatusWish::of(record)
        } else {
            let before = at.find(key).unwrap_or_else(|| record.clone());
            let (mut standing, _) = standing::read(before.status_bytes());
            at.shards[shard].writeback.foresee(key, &record.to_uid(), &mut standing);
            StatusWish::edited(record, standing, edits)
        };
        wish.say(ready);
        at.shards[shard].writeback.wish(key, wish);
        self.unwritten.insert((station, shard));
    }

    fn remember(&mut self, station: StationId, key: &ObjectKey, version: Option<Arc<Record>>) {
        let at = &mut self.stations[station.0];
        if !at.remembers || self.dry_run {
            return;
        }
        let shard = at.shard_of(key);
        let of = &mut at.shards[shard];
        let memory = match version {
            Some(record) => Memory::Version(record, of.ledger.lock().publications.remembered(key)),
            None => Memory::Nothing,
        };
        of.writeback.remember(key, memory);
        self.unwritten.insert((station, shard));
    }

    /// A job is over.
    pub(crate) fn end(&mut self, station: StationId, lane: Lane, key: &ObjectKey, finish: Finish, now: Instant) {
        let random = self.rng.random();
        // A key whose shard was lost meanwhile is not running any more.
        let _ = self.queue.finish(lane, key, finish, now, random);
        self.look_for_drained(station, key, now);
    }

    /// A job is over without having been one.
    pub(crate) fn give_back(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        let at = &mut self.stations[station.0];
        // What was in flight for a shard that was lost is looked at again when that begins anew.
        if at.land(key, &mut self.queue).is_none() {
            let _ = self.queue.abandon(at.lane, key, now);
        }
        self.look_for_drained(station, key, now);
    }
}
