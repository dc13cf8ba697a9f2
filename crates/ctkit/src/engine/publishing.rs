//! From reactions to the bus: transactions of many reactions, and a sync for every beginning.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use nimbus_core::{Backoff, Failure, Kind, Revision};
use nimbus_store::Record;
use rand::RngExt as _;
use tokio::time::Instant;

use crate::{
    engine::{
        Engine,
        booting::Boot,
        event::Event,
        memory,
        sending::{Batch, Delivered, Fate, Landed, Staged, fencing, run_out},
        station::StationId,
    },
    erased::{BoxSync, NoSync},
    instances::Shard,
    queue::Finish,
    source::CommitError,
    target::SyncEnded,
};

/// How far a shard is.
pub(crate) enum Phase {
    /// Somebody else's, or nobody's.
    Absent,
    /// Begins a sync, and reads what is on the bus.
    Opening,
    /// Every object is looked at once.
    Booting(Boot),
    /// Everything was looked at; the sync is being ended.
    Closing,
    /// In step with the bus.
    Live,
}

/// Whether the engine has nothing better to do than to send a transaction itself. If it has, others do it meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hurry {
    Yes,
    No,
}

/// A shard that has begun a sync, or has ended it.
pub(crate) struct Synced {
    pub(crate) station: StationId,
    pub(crate) shard: usize,
    /// An attempt that was overtaken by another is of no interest.
    pub(crate) attempt: u64,
    pub(crate) step: SyncStep,
}

/// What came of a step of a sync.
pub(crate) enum SyncStep {
    Opened(Opened),
    Closed(Result<SyncEnded, CommitError>),
}

/// A sync that has begun.
pub(crate) struct Opened {
    /// What was on the bus before.
    pub(crate) before: Vec<Arc<Record>>,
    pub(crate) sync: BoxSync,
    /// What must have been heard of the source before anything is done.
    heard: BTreeMap<Kind, Revision>,
}

/// Reactions in one transaction. More would not be cheaper for each, and all of them wait for the whole; with half as many,
/// tasks are woken noticeably more often for each reaction.
pub(crate) const BATCH: usize = 256;

/// Reactions that the engine publishes itself, if it has nothing else to do: to hand over so few would take longer.
const HANDFUL: usize = 16;

/// More failures in a row make nobody wait longer.
const MANY: u32 = 20;

/// How long to wait for a bus that does not take anything.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_secs(10) };

// === impl Engine ===

impl Engine {
    /// Begins a shard, if everything is there that it needs.
    pub(crate) fn open(&mut self, station: StationId, shard: usize) {
        let mut rng = self.fork();
        let at = &mut self.stations[station.0];
        if !at.begun || !at.remembered {
            return;
        }
        let of = &mut at.shards[shard];
        if !matches!(of.phase, Phase::Absent) || !of.held {
            return;
        }
        of.phase = Phase::Opening;
        self.attempts += 1;
        let (attempt, target, runner) = (self.attempts, self.target.clone(), self.runner.clone());
        let (publisher, kinds) = (of.publisher.clone(), at.outputs.clone());
        let (shares, same, tenure) = (self.shares.clone(), self.same, of.tenure.clone());
        let dry_run = self.dry_run;
        let (reflectors, is_current) = (self.reflectors.clone(), of.is_current);
        let memory = at.remembers.then(memory::kind);
        let needed: BTreeSet<_> = memory.into_iter().chain([at.kind.clone()]).collect();
        // Whoever did not get to the end of the last sync does not begin the next one at once.
        let mut failures = of.broken_off;
        self.runner.tracker.spawn(async move {
            loop {
                if failures > 0 {
                    let wait = BACKOFF.delay(failures - 1, rng.random());
                    tokio::select! {
                        () = runner.abort.cancelled() => return,
                        () = tenure.over() => return,
                        () = tokio::time::sleep(wait) => {}
                    }
                }
                let opened = async {
                    let permit = shares.permit(Shard::at(shard)).ok_or_else(run_out)?;
                    let succeeds = !is_current && permit.guard().is_some();
                    let (fence, guards) = fencing(permit, same);
                    let sync = if dry_run {
                        Box::new(NoSync) as BoxSync
                    } else {
                        target.begin_sync(publisher.clone(), fence, kinds.clone(), guards).await?
                    };
                    // Not before it has begun: what somebody writes in between would be there, and neither listed nor said.
                    let before = target.published(&publisher, &kinds).await?;
                    // Somebody else may have had the shard, and may have seen more of the source than is known here. Not before
                    // that one is fenced: from then on, there will be nothing of it that is not known.
                    let heard = if succeeds { reflectors.renew(&needed).await } else { BTreeMap::new() };
                    Ok::<_, CommitError>(Opened { before, sync, heard })
                };
                let error = tokio::select! {
                    () = runner.abort.cancelled() => return,
                    () = tenure.over() => return,
                    opened = opened => match opened {
                        Ok(opened) => {
                            let synced = Synced { station, shard, attempt, step: SyncStep::Opened(opened) };
                            return drop(runner.events.send(Event::Synced(synced)).await);
                        }
                        Err(error) => error,
                    },
                };
                if failures == 0 {
                    tracing::info!(%publisher, %error, "cannot begin to publish, trying again");
                }
                failures = (failures + 1).min(MANY);
            }
        });
        of.attempt = attempt;
    }

    /// Begins again with everything: the bus is another one, or the sync broke off.
    pub(crate) fn reopen(&mut self, station: StationId, shard: usize, now: Instant) {
        let of = &mut self.stations[station.0].shards[shard];
        if matches!(of.phase, Phase::Absent | Phase::Opening) {
            return;
        }
        of.phase = Phase::Absent;
        self.queue.close_group(of.group, now);
        self.open(station, shard);
    }

    /// A step of a sync is done.
    pub(crate) fn synced(&mut self, synced: Synced, now: Instant) {
        let Synced { station, shard, attempt, step } = synced;
        let of = &self.stations[station.0].shards[shard];
        if of.attempt != attempt {
            return;
        }
        // Whoever has lost the shard meanwhile, or hands it over, begins nothing.
        match step {
            SyncStep::Opened(..) if !of.held || !matches!(of.phase, Phase::Opening) => {}
            SyncStep::Closed(_) if !matches!(of.phase, Phase::Closing) => {}
            SyncStep::Opened(opened) if !self.has_heard(&opened.heard) => {
                self.unheard.push(Synced { station, shard, attempt, step: SyncStep::Opened(opened) });
            }
            SyncStep::Opened(Opened { before, sync, .. }) => {
                self.stations[station.0].shards[shard].is_current = true;
                self.boot(station, shard, before, sync, now);
            }
            // Its answer was overtaken by the news that the bus is another one.
            SyncStep::Closed(Ok(ended))
                if attempt <= self.met && ended.epoch.is_some() && ended.epoch != self.epoch =>
            {
                self.reopen(station, shard, now);
            }
            SyncStep::Closed(Ok(ended)) => {
                let of = &mut self.stations[station.0].shards[shard];
                of.phase = Phase::Live;
                of.epoch = ended.epoch;
                of.broken_off = 0;
                tracing::info!(publisher = %of.publisher, "in step with the bus");
                self.look_for_readiness();
                // Agents may have come and gone while nobody listened.
                self.sweep_soon(now);
            }
            SyncStep::Closed(Err(error)) => {
                let of = &mut self.stations[station.0].shards[shard];
                of.broken_off = (of.broken_off + 1).min(MANY);
                tracing::info!(publisher = %of.publisher, %error, "sync broke off, beginning again");
                self.reopen(station, shard, now);
            }
        }
    }

    /// Something of the source was heard: perhaps that was what shards wait for that are about to begin.
    pub(crate) fn open_heard(&mut self, now: Instant) {
        for synced in std::mem::take(&mut self.unheard) {
            self.synced(synced, now);
        }
    }

    fn has_heard(&self, news: &BTreeMap<Kind, Revision>) -> bool {
        news.iter().all(|(kind, revision)| {
            let watched = self.watched.get(kind);
            // Of what the source refuses to show, there is nothing to hear.
            watched.is_none_or(|watched| watched.told.unwrap_or_default() >= *revision || watched.has_heard_all())
        })
    }

    /// Puts a reaction, whose steps are there already, into the next transaction of its shard.
    pub(crate) fn stage(&mut self, station: StationId, shard: usize, staged: Staged, now: Instant) {
        let batch = &mut self.stations[station.0].shards[shard].batch;
        if self.dry_run {
            let steps = std::mem::take(&mut batch.steps);
            return self.plan(station, &staged, &steps, now);
        }
        batch.staged.push(staged);
        if batch.staged.len() >= BATCH {
            let room = Batch { staged: Vec::with_capacity(BATCH), steps: Vec::with_capacity(BATCH) };
            let batch = std::mem::replace(batch, room);
            self.send(station, shard, batch, Hurry::No);
        }
    }

    /// Sends all transactions that have something in them.
    pub(crate) fn flush(&mut self) {
        for index in 0..self.stations.len() {
            for shard in 0..self.stations[index].shards.len() {
                let batch = std::mem::take(&mut self.stations[index].shards[shard].batch);
                if !batch.staged.is_empty() {
                    let hurry = if batch.staged.len() <= HANDFUL { Hurry::Yes } else { Hurry::No };
                    self.send(StationId(index), shard, batch, hurry);
                }
            }
        }
    }

    fn send(&mut self, station: StationId, shard: usize, batch: Batch, hurry: Hurry) {
        for part in batch.parts() {
            self.send_part(station, shard, part, hurry);
        }
    }

    fn send_part(&mut self, station: StationId, shard: usize, batch: Batch, hurry: Hurry) {
        let of = &self.stations[station.0].shards[shard];
        let parcel = of.desk().parcel(batch, of.tenure.clone());
        let mut sending = Box::pin(parcel.send());
        // A bus in this process has often done it by now.
        if hurry == Hurry::Yes
            && let Poll::Ready(landed) = sending.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.landed_now.push(landed);
            return;
        }
        let runner = self.runner.clone();
        self.runner.tracker.spawn(async move {
            let landed = sending.await;
            drop(runner.events.send(Event::Landed(landed)).await);
        });
    }

    /// A transaction has reached the bus, or has not.
    pub(crate) fn landed(&mut self, landed: Landed, now: Instant) {
        let Landed { station, shard, fate, tenure } = landed;
        if tenure.is_over() {
            // Whoever has it now looks at everything again.
            return fate.keys().iter().for_each(|key| self.give_back(station, key, now));
        }
        let (error, batch) = match fate {
            Fate::Refused(error, batch) => (error, batch),
            Fate::Taken(revision, delivered) => {
                self.go_on(station, shard, now);
                self.follow(station, revision, &delivered);
                return delivered.into_iter().for_each(|one| self.succeed(station, one, now));
            }
        };
        for one in &batch.staged {
            self.adopt(station, &one.key, now);
        }
        match error {
            CommitError::Unavailable(message) => self.stall(station, shard, &batch.staged, &message, now),
            CommitError::Fenced(message) => {
                tracing::warn!(publisher = %self.stations[station.0].shards[shard].publisher, message, "fenced");
                for one in batch.staged {
                    self.give_back(station, &one.key, now);
                }
                self.doubt(station, shard, now);
            }
            // Only one of them is to blame.
            _ if batch.staged.len() > 1 => {
                for one in batch.split() {
                    self.send(station, shard, one, Hurry::Yes);
                }
            }
            error => {
                for one in batch.staged {
                    let mut ledger = self.stations[station.0].shards[shard].ledger.lock();
                    ledger.publications.refused(&one.key);
                    if let CommitError::Foreign { key, .. } = &error {
                        ledger.publications.lost(key);
                    }
                    drop(ledger);
                    let failure = refused(&error);
                    self.fail(station, &one.key, &one.record, Finish::from(failure), one.wishes, now);
                }
            }
        }
    }

    /// What is different on the bus is on its way to agents.
    fn follow(&mut self, station: StationId, revision: Revision, delivered: &[Delivered]) {
        let at = &mut self.stations[station.0];
        let owners: Box<[_]> = delivered.iter().filter(|one| one.changed).map(|one| one.key.clone()).collect();
        if owners.is_empty() || !at.listens {
            return;
        }
        if self.agents.may_have(revision) {
            // An agent was faster than the answer, and what it said could not be put down to anybody.
            for owner in &owners {
                at.news.entry(owner.clone()).or_default();
            }
        }
        self.flights.watch(revision, station, owners);
    }

    /// That the bus is away is no fault of the objects: they wait, and are looked at again when it is back.
    fn stall(&mut self, station: StationId, shard: usize, staged: &[Staged], message: &str, now: Instant) {
        for one in staged {
            self.stations[station.0].shards[shard].ledger.lock().publications.failed(&one.key);
            self.give_back(station, &one.key, now);
        }
        let random = self.rng.random();
        let of = &mut self.stations[station.0].shards[shard];
        let failures = of.stalled.map_or(0, |(_, failures)| failures);
        if failures == 0 {
            tracing::info!(publisher = %of.publisher, message, "the bus takes nothing, waiting");
        }
        of.stalled = Some((now + BACKOFF.delay(failures, random), (failures + 1).min(20)));
        self.queue.close_group(of.group, now);
    }

    /// The bus has taken something: nobody waits for it any more. Other transactions were under way with the one that it did
    /// not take, so that this may be heard of before the time to try again has come.
    fn go_on(&mut self, station: StationId, shard: usize, now: Instant) {
        let of = &mut self.stations[station.0].shards[shard];
        if of.stalled.take().is_some() && of.may_run() && self.queue.is_group_closed(of.group) {
            self.queue.open_group(of.group, now);
        }
    }

    /// Shards that have waited for long enough for a bus that takes nothing try again.
    pub(crate) fn unstall(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for at in &mut self.stations {
            for (shard, of) in at.shards.iter_mut().enumerate() {
                let Some((until, _)) = of.stalled.filter(|_| !self.draining.contains(&shard)) else { continue };
                if until > now {
                    next = Some(next.map_or(until, |next| next.min(until)));
                } else if of.may_run() && self.queue.is_group_closed(of.group) {
                    self.queue.open_group(of.group, now);
                }
            }
        }
        next
    }
}

/// What a refusal means for the object that was reacted to.
fn refused(error: &CommitError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        CommitError::Invalid { .. } => failure.with_code("INVALID").permanent(),
        CommitError::Foreign { .. } => failure.with_code("FOREIGN"),
        _ => failure.with_code("CONFLICT"),
    }
}
