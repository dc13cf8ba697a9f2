//! Answers to those who look into the engine.

use std::collections::BTreeSet;

use nimbus_core::ObjectKey;
use tokio::time::Instant;

use crate::{
    engine::{
        Engine, Watched,
        event::Command,
        publishing::Phase,
        station::{Shard, Station, StationId},
    },
    handle::{Dangling, Entry, Explanation, Waiting},
    queue::{Cause, State, View},
    references,
    stage::Stage,
};

// === impl Engine ===

impl Engine {
    /// Does what was asked.
    pub(crate) fn command(&mut self, command: Command, now: Instant) {
        match command {
            // Whoever does not wait for the answer any more need not get it.
            Command::Entries(answer) => {
                self.adopt_all(now);
                drop(answer.send(self.entries(now)));
            }
            Command::Explain(station, key, answer) => {
                self.adopt(station, &key, now);
                drop(answer.send(self.explain(station, &key, now)));
            }
            Command::Dangling(station, answer) => drop(answer.send(self.dangling(station, now))),
            Command::Settled(answer) => self.settled.push(answer),
            Command::Pause(station, None) => self.queue.pause_lane(self.stations[station.0].lane),
            Command::Pause(station, Some(key)) => self.pause_by_hand(station, &key, now),
            Command::Resume(station, None) => self.queue.resume_lane(self.stations[station.0].lane),
            Command::Resume(station, Some(key)) => self.resume_by_hand(station, &key, now),
            Command::Wake(station, key) => {
                let at = &self.stations[station.0];
                self.enqueue(at.id, key, Cause::Manual, now);
            }
        }
    }

    fn entries(&self, now: Instant) -> Vec<Entry> {
        self.queue.entries().filter_map(|view| self.entry(&view, now)).collect()
    }

    fn entry(&self, view: &View<'_, ObjectKey>, now: Instant) -> Option<Entry> {
        let (state, until) = match view.state {
            State::Ready => (Waiting::Ready, None),
            State::Delayed { until } => (Waiting::Delayed, Some(until)),
            State::Retrying { until } => (Waiting::Retrying, Some(until)),
            State::Running { .. } => (Waiting::Running, None),
            State::Waiting { until } => (Waiting::Waiting, until),
            State::Failed => (Waiting::Failed, None),
            State::Quarantined { until } => (Waiting::Quarantined, Some(until)),
            State::Poisoned => (Waiting::Poisoned, None),
            State::Paused => (Waiting::Paused, None),
            State::Held => (Waiting::Held, None),
            State::Quiet { .. } => return None,
        };
        Some(Entry {
            controller: self.stations[self.station_of(view.lane).0].name.clone(),
            object: view.key.clone(),
            state,
            since: now.saturating_duration_since(view.since),
            next_in: until.map(|until| until.saturating_duration_since(now)),
            causes: view.causes,
            attempts: view.attempts,
            failure: view.failure.cloned(),
        })
    }

    fn explain(&self, station: StationId, key: &ObjectKey, now: Instant) -> Option<Explanation> {
        let at = &self.stations[station.0];
        let entry = self.queue.get(at.lane, key).and_then(|view| self.entry(&view, now));
        let known = at.known.get(key);
        let published: Vec<_> = at.shards[at.shard_of(key)].ledger.lock().publications.children(key).cloned().collect();
        if entry.is_none() && known.is_none() && published.is_empty() {
            return None;
        }
        let references = at.references.lock();
        let find = |key: &ObjectKey| self.snapshot(key.kind()).get(key).is_some();
        Some(Explanation {
            entry,
            dealt_with: known.and_then(|known| known.acked.as_ref()).map(|acked| acked.generation().0),
            published,
            refers_to: references.explain(key, find).refers_to,
            waits_for: references.explain(key, find).blocked_by,
        })
    }

    fn dangling(&self, station: StationId, now: Instant) -> Vec<Dangling> {
        let there = |key: &ObjectKey| self.snapshot(key.kind()).get(key).is_some();
        let missing = self.stations[station.0].references.lock().dangling(there).into_iter();
        let told = |one: references::Dangling| Dangling {
            referent: one.referent,
            referrers: one.referrers,
            since: now.saturating_duration_since(one.since),
        };
        missing.map(told).collect()
    }

    /// Whether nothing is left to do but to wait for something that is not planned.
    pub(crate) fn is_settled(&self) -> bool {
        self.queue.totals().running == 0
            && self.stations.iter().all(|at| self.rests(at))
            && self.watched.values().all(Watched::has_heard_all)
    }

    /// Whether a controller has nothing left to do now.
    fn rests(&self, at: &Station) -> bool {
        let is_quiet = |of: &Shard| {
            let is_live = matches!(of.phase, Phase::Live) && of.stalled.is_none() && of.writeback.is_idle();
            is_live || (matches!(of.phase, Phase::Absent) && !of.held)
        };
        let counts = self.queue.counts(at.lane);
        let ready = if self.queue.is_lane_paused(at.lane) { 0 } else { counts.ready };
        ready == 0 && counts.running == 0 && at.listed && at.remembered && at.shards.iter().all(is_quiet)
    }

    /// How far some controllers are.
    pub(crate) fn stage_of(&self, controllers: &[StationId]) -> Stage {
        let of = |id: &StationId| &self.stations[id.0];
        let is_synced = |at: &Station| {
            let is_live = |of: &Shard| !of.held || matches!(of.phase, Phase::Live);
            at.listed && at.remembered && at.shards.iter().all(is_live)
        };
        if !controllers.iter().map(of).all(is_synced) {
            return Stage::Syncing;
        }
        let heard = |at: &Station| self.watched.get(&at.kind).is_none_or(Watched::has_heard_all);
        let rests = controllers.iter().map(of).all(|at| self.rests(at) && heard(at));
        if rests { Stage::Idle } else { Stage::Busy }
    }

    /// Tells those who listen how far their controllers are.
    pub(crate) fn look_for_stages(&self) {
        for listener in &self.listeners {
            listener.told.send_if_modified(|told| {
                let stage = self.stage_of(&listener.controllers);
                let changed = *told != stage;
                *told = stage;
                changed
            });
        }
    }

    /// Says what is still missing.
    pub(crate) fn look_for_readiness(&self) {
        let mut missing = BTreeSet::new();
        for at in &self.stations {
            if !at.listed {
                missing.insert(format!("{}: list of {}", at.name, at.kind));
            }
            if !at.remembered {
                missing.insert(format!("{}: what was dealt with before", at.name));
            }
            let booting = at.shards.iter().filter(|of| of.held && !matches!(of.phase, Phase::Live)).count();
            if booting > 0 {
                missing.insert(format!("{}: {booting} of {} shards", at.name, at.shards.len()));
            }
        }
        self.readiness.set(missing);
    }
}
