//! From a key in the queue to a call of the reactor, always with the newest version.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Failure, Finalizers, Generation, Labels, ObjectKey, PublisherId, Revision, Uid,
    planted::{self, Bug},
};
use nimbus_store::{Content, FinalizersDraft, Op, Precondition, Record, Slot, Step, Txn};
use tokio::time::Instant;

use crate::{
    action::{Action, Next},
    context::{Context, Wishes},
    controller::Deletion,
    engine::{
        Engine,
        publishing::BATCH,
        run::{Start, Work},
        sending::{Staged, fencing},
        station::{Difference, Known, Station, StationId, difference},
    },
    instances::Shard,
    queue::{Cause, Causes, Finish, Job},
    reactor::{Call, Reaction},
    report::{Heard, Propagation},
    source::CommitError,
    standing::{Code, Ready},
};

/// What a run of an object is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It should be like this.
    Apply,
    /// It is gone, or asked to go.
    Delete,
    /// An earlier life of its name is over.
    Recreate,
    /// Agents have said something.
    Status,
    /// Nobody has to be asked: what was published for it goes.
    Withdraw,
    /// Everything is taken back; whoever waits for that is told.
    Release,
}

/// On an object: leave it alone.
pub(crate) const PAUSED: &str = "nimbus/paused";

/// What the status of an object says that somebody paused while this process runs.
const BY_HAND: &str = "by hand, until it is resumed or the controller restarts";

/// What was published is looked up for so many children at most; a summary of more would take too long.
const SUMMED_UP: usize = 256;

/// What was written can be read again after a moment, or not at all.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(2);

/// Agents that are still to let go of an object are looked at again after this long, if they do not speak up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

// === impl Engine ===

impl Engine {
    /// Starts as many reactions as the queue allows.
    pub(crate) fn start(&mut self, now: Instant) {
        let mut chunk = Vec::new();
        loop {
            while let Some(job) = self.queue.next(now) {
                if let Some(start) = self.begin(&job, now) {
                    chunk.push(start);
                }
                if chunk.len() >= CHUNK {
                    self.runner.run(std::mem::take(&mut chunk));
                }
            }
            let launched = self.launch(now);
            if !self.feed(now) && !launched {
                break;
            }
        }
        if !chunk.is_empty() {
            self.runner.run(chunk);
        }
    }

    /// What to do for a key; `None` if it is done already.
    fn begin(&mut self, job: &Job<ObjectKey>, now: Instant) -> Option<Start> {
        let station = self.station_of(job.lane);
        let key = job.key.clone();
        let shard = self.stations[station.0].shard_of(&key);
        if self.shares.permit(Shard::at(shard)).is_none() {
            // Nothing here has noticed yet, after a pause perhaps, but somebody else may be at work by now.
            self.give_back(station, &key, now);
            self.doubt(station, shard, now);
            return None;
        }
        let at = &mut self.stations[station.0];
        let mut causes = job.causes;
        let newest = if job.causes == Cause::Boot.into() { at.find_fresh(&key) } else { at.find(&key) };
        if let Some(record) = newest.as_ref().filter(|record| is_paused(record)) {
            self.pause(station, &key, &record.clone(), now);
            return None;
        }
        if let (Some(newest), Some(known)) = (&newest, at.known.get_mut(&key)) {
            if newest.revision() < known.wrote {
                // What is read must not be older than what was written. If it still is when the time is up, the source
                // has begun again, and counts from elsewhere.
                let since = known.lag(now, job.causes.contains(Cause::Requeued));
                let left = CATCH_UP.saturating_sub(now.duration_since(since));
                if !left.is_zero() {
                    self.end(station, job.lane, &key, Finish::Waiting(Some(left)), now);
                    return None;
                }
                known.wrote = Revision::ZERO;
            }
            // That it was waited for is no reason to call a reactor.
            if known.caught_up() {
                causes.remove(Cause::Requeued);
            }
        }
        let Some((sort, call)) = at.decide(&key, newest.as_ref(), causes) else {
            self.done(station, &key, now);
            return None;
        };
        let at = &mut self.stations[station.0];
        let known = at.known.entry(key.clone()).or_default();
        known.round = known.round.wrapping_add(1);
        known.running = at.rounds.is_some() && (sort != Sort::Withdraw || at.deletion == Deletion::Orphan);
        if sort != Sort::Status {
            known.begun = at.shards[shard].attempt;
        }
        if let (Sort::Apply, Some(newest)) = (sort, &newest) {
            known.tried = Some(newest.clone());
        }
        let subject = match &call {
            Call::Create(record) | Call::Update(_, record) | Call::Delete(record) | Call::Status(record, _) => {
                record.clone()
            }
        };
        let bequeaths = self.stations[station.0].deletion == Deletion::Orphan;
        if sort == Sort::Withdraw && !bequeaths {
            self.withdraw(station, &key, subject, sort, &[], now);
            return None;
        }
        let common = self.stations[station.0].common();
        let (circumstances, publishes) = ((job.attempt, causes), sort == Sort::Apply);
        let context = |subject| Context::new(common.surroundings.clone(), subject, circumstances, publishes);
        let missing = newest.as_ref().and_then(|newest| self.missing_mark(station, newest));
        let work = match (sort, call) {
            (Sort::Release, Call::Delete(last)) => Work::Begun(context(subject), self.release(station, &key, &last)),
            (Sort::Status, Call::Status(record, _)) => {
                let cx = context(subject);
                Work::Begun(cx.clone(), self.hear(station, &key, record, cx))
            }
            (Sort::Withdraw, _) => {
                let cx = context(subject);
                Work::Begun(cx.clone(), self.bequeath(station, &key, cx, None))
            }
            (Sort::Delete | Sort::Recreate, call) if bequeaths => {
                let cx = context(subject);
                Work::Begun(cx.clone(), self.bequeath(station, &key, cx, Some(call)))
            }
            (_, call) => match newest.zip(missing) {
                Some((newest, name)) => {
                    let cx = context(subject);
                    Work::Begun(cx.clone(), self.mark(station, &newest, &name, cx, call))
                }
                None => Work::Call { call, subject, circumstances, publishes },
            },
        };
        let tenure = self.stations[station.0].shards[shard].tenure.clone();
        Some(Start { lane: job.lane, key, sort, work, common, tenure })
    }

    /// The finalizer that an object does not have yet, if it must have one before it is reacted to.
    fn missing_mark(&self, station: StationId, newest: &Record) -> Option<Arc<str>> {
        let name = self.stations[station.0].finalizer.as_ref()?;
        let is_missing = !self.dry_run && !newest.is_deleting() && !newest.finalizers().contains(name);
        is_missing.then(|| name.clone())
    }

    /// Makes sure that no delete is missed, and calls the reactor then.
    fn mark(&self, station: StationId, newest: &Record, name: &str, cx: Context, call: Call) -> Reaction {
        let at = &self.stations[station.0];
        let (reactor, mark) = (at.reactor.clone(), self.finalizers(at, newest, Some(name), None));
        Box::pin(async move {
            match mark.await {
                Ok(_) => reactor.call(cx, call).await,
                Err(error) => Err(Failure::new(error.to_string()).with_code("FINALIZER")),
            }
        })
    }

    /// Calls the reactor, if it is to be asked, and then looks up what is to stay without its owner.
    fn bequeath(&self, station: StationId, key: &ObjectKey, cx: Context, call: Option<Call>) -> Reaction {
        let at = &self.stations[station.0];
        let of = &at.shards[at.shard_of(key)];
        let children: HashSet<_> = of.ledger.lock().publications.children(key).cloned().collect();
        let (reactor, target) = (at.reactor.clone(), self.target.clone());
        let (publisher, kinds) = (of.publisher.clone(), at.outputs.clone());
        Box::pin(async move {
            let action = match call {
                Some(call) => reactor.call(cx.clone(), call).await?,
                None => Action::done(),
            };
            let records = target.published(&publisher, &kinds).await.map_err(|error| unavailable(&error))?;
            cx.keep(records.into_iter().filter(|record| children.contains(record.key())).collect());
            Ok(action)
        })
    }

    /// Collects what agents say, and calls the reactor with it.
    fn hear(&mut self, station: StationId, key: &ObjectKey, record: Arc<Record>, cx: Context) -> Reaction {
        let at = &mut self.stations[station.0];
        let shard = at.shard_of(key);
        let children: Vec<_> = at.shards[shard]
            .ledger
            .lock()
            .publications
            .children(key)
            .take(SUMMED_UP)
            .cloned()
            .collect();
        let news = at.news.remove(key).unwrap_or_default();
        let agents = news.iter().map(|agent| self.agents.about(agent, &children)).collect();
        at.telling.insert(key.clone(), news);
        let (reactor, target) = (at.reactor.clone(), self.target.clone());
        Box::pin(async move {
            let mut propagation = Propagation::default();
            for child in &children {
                propagation.add(child, &target.propagation(child).await.map_err(|error| unavailable(&error))?);
            }
            let heard = Box::new(Heard { propagation, agents });
            reactor.call(cx, Call::Status(record, heard)).await
        })
    }

    /// Lets an object go that was taken back, as soon as agents have let go of it, if that is wanted.
    fn release(&self, station: StationId, key: &ObjectKey, last: &Arc<Record>) -> Reaction {
        let at = &self.stations[station.0];
        let children = at.known.get(key).and_then(Known::letting_go).unwrap_or_default().to_vec();
        let waits = at.deletion == Deletion::AfterAgents;
        let target = self.target.clone();
        let name = at.finalizer.clone();
        let unmark = name.map(|name| self.finalizers(at, last, None, Some(&name)));
        Box::pin(async move {
            if waits {
                for child in &children {
                    let propagation = target.propagation(child).await.map_err(|error| unavailable(&error))?;
                    if propagation.applied < propagation.agents {
                        return Ok(Action::requeue_after(LOOK_AGAIN));
                    }
                }
            }
            match unmark {
                None => Ok(Action::done()),
                Some(unmark) => match unmark.await {
                    Ok(_) | Err(CommitError::NotFound(_)) => Ok(Action::done()),
                    Err(error) => Err(Failure::new(error.to_string()).with_code("FINALIZER")),
                },
            }
        })
    }

    fn finalizers(
        &self,
        at: &Station,
        record: &Record,
        add: Option<&str>,
        remove: Option<&str>,
    ) -> crate::erased::BoxCommit {
        let names = |name: Option<&str>| Finalizers::new(name).expect("it was checked when the controller was built");
        let draft = FinalizersDraft { key: record.key().clone(), add: names(add), remove: names(remove) };
        let precondition = Precondition { uid: Some(record.to_uid()), ..Precondition::default() };
        let step = Step { op: Op::Finalizers(draft), precondition, take_over: false };
        let of = &at.shards[at.shard_of(record.key())];
        let Some(permit) = self.shares.permit(Shard::at(at.shard_of(record.key()))) else {
            return Box::pin(async { Err(CommitError::Fenced("the lease has run out".to_owned())) });
        };
        let (fence, leases) = fencing(permit, true);
        self.source
            .commit(Txn { publisher: of.publisher.clone(), fence, leases, steps: vec![step] })
    }

    /// Takes back what was published, without asking anybody.
    pub(crate) fn withdraw(
        &mut self,
        station: StationId,
        key: &ObjectKey,
        record: Arc<Record>,
        sort: Sort,
        kept: &[Arc<Record>],
        now: Instant,
    ) {
        let at = &mut self.stations[station.0];
        let shard = at.shard_of(key);
        let steps = match at.deletion {
            Deletion::Orphan => at.shards[shard].ledger.lock().publications.orphan(key, kept),
            _ => at.shards[shard].ledger.lock().publications.withdraw(key),
        };
        let (key, next, wishes) = (key.clone(), Next::Done, Wishes::default());
        let staged = Staged { key, record, sort, next, wishes, steps: steps.len() };
        at.shards[shard].batch.steps.extend(steps);
        self.stage(station, shard, staged, now);
    }

    fn pause(&mut self, station: StationId, key: &ObjectKey, record: &Arc<Record>, now: Instant) {
        let ready = Ready::new(Code::Paused, "", record.generation());
        self.say(station, key, record, Vec::new(), Some(ready));
        let at = &mut self.stations[station.0];
        at.known.entry(key.clone()).or_default().tried = Some(record.clone());
        self.done(station, key, now);
    }

    /// Somebody wants an object to be left alone; its status says so, if there is an object.
    pub(crate) fn pause_by_hand(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        self.adopt(station, key, now);
        let at = &self.stations[station.0];
        self.queue.pause(at.lane, key, now);
        if let Some(record) = at.find(key).filter(|_| at.shards[at.shard_of(key)].may_run()) {
            let ready = Ready::new(Code::Paused, BY_HAND, record.generation());
            self.say(station, key, &record, Vec::new(), Some(ready));
        }
    }

    /// Goes on with an object. It is looked at in any case, for its status must not say any longer that it is paused.
    pub(crate) fn resume_by_hand(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        if self.queue.resume(self.stations[station.0].lane, key, now) {
            self.enqueue(station, key.clone(), Cause::Manual, now);
        }
    }

    /// There is nothing to do for a key.
    pub(crate) fn done(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        let lane = self.stations[station.0].lane;
        self.end(station, lane, key, Finish::Done, now);
        self.looked_at(station, key);
    }
}

/// Reactions that are handed to one task. Enough for its cost not to matter, and as many as a transaction has: they are
/// published when the task is over.
pub(crate) const CHUNK: usize = BATCH;

// === impl Station ===

impl Station {
    /// What to call the reactor with; `None` if there is nothing to do.
    fn decide(&mut self, key: &ObjectKey, newest: Option<&Arc<Record>>, causes: Causes) -> Option<(Sort, Call)> {
        let mut acked = self.known.get(key).and_then(|known| known.acked.clone());
        let Some(newest) = newest else { return self.decide_gone(key, acked) };
        if let Some(earlier) = acked.take_if(|acked| !acked.has_life_of(newest)) {
            if !self.has_found_children_of(key, &newest.to_uid()) {
                return Some((Sort::Recreate, Call::Delete(earlier)));
            }
            // Whoever was here before has dealt with the end of the earlier life, and then published for this one, but did
            // not get to write it down. To withdraw it now would take from agents what they should have.
            self.known.entry(key.clone()).or_default().acked = None;
        }
        let known = self.known.get(key);
        if newest.is_deleting() {
            let ours = self.finalizer.as_ref().is_some_and(|name| newest.finalizers().contains(name));
            // It is looked at again whenever it changes: what the reactor last saw of it was not deleted yet.
            if !ours || self.is_after_others(newest) {
                return None;
            }
            if known.is_some_and(|known| known.letting_go().is_some()) {
                return Some((Sort::Release, Call::Delete(newest.clone())));
            }
            return Some(match acked {
                Some(acked) => (Sort::Delete, Call::Delete(acked)),
                None => (Sort::Withdraw, Call::Delete(newest.clone())),
            });
        }
        let only_status = causes.iter().all(|cause| matches!(cause, Cause::Status | Cause::Retried));
        // A report that could not be told is told again even if nobody listens any more: the status says that it failed.
        let is_news = self.news.contains_key(key) || causes.contains(Cause::Retried);
        let only_news =
            only_status && is_news && acked.as_ref().is_some_and(|acked| difference(acked, newest) == Difference::None);
        if only_news {
            return Some((Sort::Status, Call::Status(newest.clone(), Box::default())));
        }
        if only_status && acked.is_some() {
            return None;
        }
        Some(match acked {
            Some(acked) => (Sort::Apply, Call::Update(acked, newest.clone())),
            None => (Sort::Apply, Call::Create(newest.clone())),
        })
    }

    /// Whether others must finish with a deleted object before this one begins to. Nothing is said about it in the status,
    /// which belongs to those who have something to do; the finalizers of the object tell who that is.
    fn is_after_others(&self, newest: &Record) -> bool {
        let present = newest.finalizers();
        self.finalizes_after.iter().any(|other| present.contains(other))
    }

    fn decide_gone(&mut self, key: &ObjectKey, acked: Option<Arc<Record>>) -> Option<(Sort, Call)> {
        if let Some(acked) = acked.filter(|_| !planted::is(Bug::DeleteNever)) {
            return Some((Sort::Delete, Call::Delete(acked)));
        }
        let tried = self.known.get(key).and_then(|known| known.tried.clone());
        let shard = self.shard_of(key);
        if self.shards[shard].ledger.lock().publications.children(key).next().is_none() {
            self.forget(key);
            return None;
        }
        // It was never dealt with here, but something was published for it: by an earlier process.
        let record = tried.unwrap_or_else(|| nobody(key));
        Some((Sort::Withdraw, Call::Delete(record)))
    }

    /// Nothing is left of an object.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.known.remove(key);
        self.news.remove(key);
        self.references.forget(key);
    }
}

pub(crate) fn is_paused(record: &Record) -> bool {
    record.annotations().get(PAUSED).is_some_and(|value| value != "false")
}

fn unavailable(error: &CommitError) -> Failure {
    Failure::new(error.to_string()).with_code("UNAVAILABLE")
}

/// An object of which nothing is known but its name.
fn nobody(key: &ObjectKey) -> Arc<Record> {
    let content = Content {
        key: key.clone(),
        uid: Uid::new("unknown").expect("it is a name"),
        generation: Generation(0),
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        manager: PublisherId::new("unknown").expect("it is a name"),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: Audience::Everyone,
        spec: Bytes::new(),
        status: Bytes::new(),
        observed: Generation(0),
    };
    Arc::new(Record::new(content, Slot { revision: Revision::ZERO, seq: 0 }))
}
