//! Metrics that are looked up when somebody reads them, rather than counted on the way.

use nimbus_wire::v1::AgentState;
use tokio::time::Instant;

use crate::{
    fleet::Viewer,
    inner::Inner,
    metrics::{Metrics, count},
    session::Stage,
};

/// How far agents are behind, one after the other.
#[derive(Debug, Default)]
struct Lag {
    behind: usize,
    exceptions: [u64; 3],
    revisions: (u64, u64),
    seconds: (f64, f64),
}

// === impl Inner ===

impl Inner {
    /// Looks everything up. If somebody else is about it, that is good enough.
    pub(crate) fn observe(&self, now: Instant) {
        let Some(_turn) = self.observing.try_lock() else { return };
        // This lets those end whose time is over.
        self.count_leases();
        self.observe_store(now);
        self.observe_sessions(now);
        self.lag(now).tell(&self.metrics);
    }

    fn observe_store(&self, now: Instant) {
        let (metrics, state, usage) = (&self.metrics, self.store.state(), self.store.usage());
        let bytes = usize::try_from(state.bytes()).unwrap_or(usize::MAX);
        for (limit, used) in [
            ("objects", state.objects()),
            ("bytes", bytes),
            ("kinds", state.kinds().count()),
            ("tombstones", usage.tombstones),
            ("idle_filters", usage.idle_filters),
            ("unsettled", usage.unsettled),
            ("unsettled_bytes", usage.unsettled_bytes),
            ("group_bytes", usage.group_bytes),
            ("publishers", self.publishers()),
            ("open_lists", self.lists.open()),
            ("schema_kinds", self.schemas.count()),
            ("reports_bytes", self.fleet.reported_bytes()),
            ("incoming_bytes", self.incoming.bytes()),
            ("outgoing_bytes", self.outgoing.bytes()),
            ("connections", usize::try_from(metrics.connections.get()).unwrap_or(0)),
        ] {
            metrics.set_used(limit, used);
        }
        metrics.revision.set(count(state.head().0));
        metrics.horizon.set(count(state.horizon().0));
        metrics.feeds.set(count(usage.feeds));
        metrics.filters.set(count(usage.filters));
        metrics
            .incomplete
            .set(count(state.kinds().filter(|(kind, _)| !state.is_complete(kind)).count()));
        metrics.store_failed.set(i64::from(self.store.failure().is_some()));
        metrics.ready.set(i64::from(self.is_ready()));
        metrics
            .leases_expired
            .inc_by(usage.leases_expired.saturating_sub(metrics.leases_expired.get()));
        metrics.silence.set(self.silence(now).as_secs_f64());
    }

    fn observe_sessions(&self, now: Instant) {
        let mut census = [0; 3];
        for stage in self.sessions.stages() {
            census[match stage {
                Stage::Live => 0,
                Stage::Waiting => 1,
                Stage::Queued => 2,
            }] += 1;
        }
        self.metrics.set_subscriptions(census);
        let admission = self.admission.lock();
        self.metrics.snapshot_wait.set(admission.wait(now).as_secs_f64());
        self.metrics.set_used("reservations", admission.turns());
    }

    /// How far all agents that are not lost are behind.
    fn lag(&self, now: Instant) -> Lag {
        self.fleet.tick(now);
        let state = self.store.state();
        let mut viewer = Viewer::new(&self.fleet, &state, None, now);
        let mut lag = Lag::default();
        for agent in self.fleet.agents().values() {
            let entry = agent.entry.lock();
            if entry.presence.state(now, self.fleet.lost_after).0 == AgentState::Lost {
                continue;
            }
            let health = viewer.health(agent, &entry);
            let applied = entry.progress.marks().applied;
            lag.behind += usize::from(!health.in_sync);
            let counts = [health.counts.failed, health.counts.pending, health.counts.degraded];
            for (sum, count) in lag.exceptions.iter_mut().zip(counts) {
                *sum += u64::from(count);
            }
            let revisions = health.last_relevant.0.saturating_sub(applied.0);
            let seconds = viewer.lag(agent, &entry.shape, applied, health.last_relevant) as f64 / 1000.0;
            lag.revisions = (lag.revisions.0.max(revisions), lag.revisions.1.saturating_add(revisions));
            lag.seconds = (lag.seconds.0.max(seconds), lag.seconds.1 + seconds);
        }
        lag
    }
}

// === impl Lag ===

impl Lag {
    fn tell(&self, metrics: &Metrics) {
        metrics.agents_behind.set(count(self.behind));
        metrics.set_exceptions(self.exceptions);
        metrics.lag_revisions.set(count(self.revisions.0));
        metrics.lag_revisions_sum.set(count(self.revisions.1));
        metrics.lag_seconds.set(self.seconds.0);
        metrics.lag_seconds_sum.set(self.seconds.1);
    }
}
