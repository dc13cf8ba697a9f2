//! Looks at the real world from time to time, without getting into anybody's way.

use std::{cmp::Reverse, collections::BinaryHeap, future::Future, pin::Pin, sync::Arc, time::Duration};

use nimbus_core::{Failure, KeySet, ObjectKey};
use nimbus_store::Record;
use rand::RngExt as _;
use tokio::time::Instant;

use crate::{
    context::Context,
    engine::{
        Engine,
        event::Event,
        station::{Known, StationId, shard_of},
    },
    observer::{ErasedObserver, Observation},
    queue::{Cause, Causes},
};

/// When objects of a controller are to be looked at.
pub(crate) struct Rounds {
    pub(crate) observer: Arc<dyn ErasedObserver>,
    interval: Duration,
    due: BinaryHeap<Reverse<(Instant, ObjectKey)>>,
    /// In `due`, or being looked at.
    planned: KeySet,
    running: usize,
}

/// Somebody has looked at the real world.
pub(crate) struct Observed {
    station: StationId,
    key: ObjectKey,
    record: Arc<Record>,
    /// The reaction after which it was looked.
    round: u32,
    cx: Context,
    result: Result<Observation, Failure>,
}

/// Looks at the same time: the world is not asked by a crowd.
const LOOKS: usize = 16;

type Look = Pin<Box<dyn Future<Output = Result<Observation, Failure>> + Send>>;

// === impl Rounds ===

impl Rounds {
    pub(crate) fn new(observer: Arc<dyn ErasedObserver>, interval: Duration) -> Self {
        Self { observer, interval, due: BinaryHeap::new(), planned: KeySet::default(), running: 0 }
    }

    /// Looks at an object from now on. The first time is anywhere within the interval, so that a crowd spreads out.
    pub(crate) fn plan(&mut self, key: &ObjectKey, now: Instant, random: f64) {
        if self.planned.insert(key.clone()) {
            self.due.push(Reverse((now + self.interval.mul_f64(random), key.clone())));
        }
    }

    fn again(&mut self, key: ObjectKey, now: Instant, random: f64) {
        self.due.push(Reverse((now + self.interval.mul_f64(0.75 + random / 2.0), key)));
    }
}

// === impl Engine ===

impl Engine {
    /// Begins to look at what is due; says when to look again.
    pub(crate) fn observe(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for index in 0..self.stations.len() {
            while let Some(key) = self.due(index, now) {
                self.look(StationId(index), key, now);
            }
            let rounds = self.stations[index].rounds.as_ref();
            let deadline = rounds.filter(|rounds| rounds.running < LOOKS).and_then(|rounds| rounds.due.peek());
            if let Some(Reverse((at, _))) = deadline {
                next = Some(next.map_or(*at, |next| next.min(*at)));
            }
        }
        next
    }

    fn due(&mut self, index: usize, now: Instant) -> Option<ObjectKey> {
        let rounds = self.stations[index].rounds.as_mut()?;
        if rounds.running >= LOOKS || rounds.due.peek().is_none_or(|Reverse((at, _))| *at > now) {
            return None;
        }
        rounds.due.pop().map(|Reverse((_, key))| key)
    }

    fn look(&mut self, station: StationId, key: ObjectKey, now: Instant) {
        let random = self.rng.random();
        let at = &mut self.stations[station.0];
        let surroundings = at.surroundings();
        let Some(rounds) = at.rounds.as_mut() else { return };
        let known = at.known.get(&key);
        let is_running = known.is_some_and(|known| known.running);
        let Some((record, round)) = known.and_then(|known| Some((known.acked.clone()?, known.round))) else {
            rounds.planned.remove(&key);
            return;
        };
        if is_running {
            return rounds.again(key, now, random);
        }
        if !at.shards[shard_of(&key, at.shards.len())].held {
            // Whoever has it now looks at it.
            rounds.planned.remove(&key);
            return;
        }
        rounds.running += 1;
        let circumstances = (0, Causes::NONE);
        let cx = Context::new(surroundings, record.clone(), circumstances, false);
        let mut look: Look = rounds.observer.clone().observe(cx.clone(), record.clone());
        let (deadline, runner) = (at.deadline, self.runner.clone());
        self.runner.tracker.spawn(async move {
            let result = tokio::select! {
                result = crate::engine::run::caught(&mut look) => result,
                () = tokio::time::sleep(deadline) => Err(Failure::new("took too long").with_code("DEADLINE")),
                () = runner.abort.cancelled() => return,
            };
            let observed = Observed { station, key, record, round, cx, result };
            drop(runner.events.send(Event::Observed(observed)).await);
        });
    }

    /// Takes what somebody has seen, unless it is of a world that has changed since.
    pub(crate) fn observed(&mut self, observed: Observed, now: Instant) {
        let Observed { station, key, record, round, cx, result } = observed;
        let random = self.rng.random();
        let at = &mut self.stations[station.0];
        if let Some(rounds) = &mut at.rounds {
            rounds.running -= 1;
            rounds.again(key.clone(), now, random);
        }
        let is_current = |known: &Known| known.round == round && known.acked.is_some() && !known.running;
        if !at.known.get(&key).is_some_and(is_current) {
            tracing::trace!(object = %key, "observation is out of date");
            return;
        }
        let (_, wishes) = cx.take();
        self.say(station, &key, &record, wishes.status, None);
        match result {
            Ok(Observation::Drifted(what)) => {
                tracing::info!(object = %key, what, "drifted");
                self.enqueue(station, key, Cause::Drifted, now);
            }
            Ok(_) => {}
            Err(failure) => tracing::info!(object = %key, %failure, "cannot observe"),
        }
    }
}
