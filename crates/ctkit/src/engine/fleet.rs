//! What the bus says: that it is another one, and what agents report.

use nimbus_core::{AgentId, Epoch, ObjectKey};
use tokio::time::Instant;

use crate::{
    engine::{Engine, agents::News, flights::Flights, station::StationId},
    queue::Cause,
    target::TargetEvent,
};

// === impl Engine ===

impl Engine {
    /// The bus has said something.
    pub(crate) fn told(&mut self, event: TargetEvent, now: Instant) {
        match event {
            TargetEvent::Connected(epoch) => {
                self.agents.begin();
                self.meet(epoch, now);
            }
            TargetEvent::Report(report) => {
                let news = self.agents.report(*report);
                self.spread(&news, now);
            }
            TargetEvent::Forgotten(agent) => {
                if let Ok(agent) = AgentId::new(&agent) {
                    let news = self.agents.forget(&agent);
                    self.spread(&news, now);
                }
            }
            TargetEvent::CaughtUp => {
                if self.agents.end() {
                    self.sweep_soon(now);
                }
            }
        }
    }

    /// A bus that has lost its memory is told everything again. That it is the first one that is heard of does not make it
    /// the one that was told everything.
    fn meet(&mut self, epoch: Epoch, now: Instant) {
        self.met = self.attempts;
        let before = self.epoch.replace(epoch);
        let mut shards = self.stations.iter().flat_map(|at| &at.shards);
        let has_told_another = shards.any(|of| of.has_told_another(epoch));
        if before.is_none_or(|before| before == epoch) && !has_told_another {
            return;
        }
        tracing::info!(%epoch, "the bus is another one, publishing everything again that it was not told");
        self.agents.begin_at_zero();
        self.flights = Flights::default();
        // Calls may have got through before the news did: then this bus has been told everything already.
        let shards: Vec<_> = (self.stations.iter())
            .flat_map(|at| (at.shards.iter().enumerate()).map(|(shard, of)| (at.id, shard, of.is_in_step_with(epoch))))
            .filter_map(|(station, shard, is_in_step)| (!is_in_step).then_some((station, shard)))
            .collect();
        for (station, shard) in shards {
            self.reopen(station, shard, now);
        }
        self.sweep_soon(now);
    }

    /// Wakes the owners of everything that an agent has something new to say about.
    fn spread(&mut self, news: &News, now: Instant) {
        let Some(agent) = &news.agent else { return };
        let mut owners: Vec<(StationId, ObjectKey)> = Vec::new();
        for at in self.stations.iter().filter(|at| at.listens) {
            let owner = |child: &ObjectKey| {
                at.shards.iter().find_map(|of| of.ledger.lock().publications.owner_of(child).cloned())
            };
            owners.extend(news.objects.iter().filter_map(owner).map(|owner| (at.id, owner)));
        }
        if news.presence {
            owners.extend(self.listeners());
        }
        if let Some((from, to)) = news.applied {
            owners.extend(self.flights.between(from, to).map(|(station, owner)| (station, owner.clone())));
        }
        if news.is_new || news.applied.is_some_and(|(from, _)| !self.flights.has_all_after(from)) {
            self.sweep_soon(now);
        }
        for (station, owner) in owners {
            self.stations[station.0].news.entry(owner.clone()).or_default().insert(agent.clone());
            self.wake_for_news(station, &owner, now);
        }
        // What every agent has applied needs no watching any more.
        if let Some(low) = self.agents.low_water() {
            self.flights.arrived(low);
        }
    }

    /// If agents have something new to say about an object, its reactor should hear it.
    pub(crate) fn wake_for_news(&mut self, station: StationId, key: &ObjectKey, now: Instant) {
        if self.stations[station.0].news.contains_key(key) {
            self.enqueue(station, key.clone(), Cause::Status, now);
        }
    }
}
