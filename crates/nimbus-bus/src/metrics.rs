//! What operators watch.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

/// What operators watch. Names of objects, agents and publishers are never labels.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub(crate) sessions: Gauge,
    pub(crate) superseded: Counter,
    pub(crate) answers: Family<ModeLabel, Counter>,
    pub(crate) sent_bytes: Counter,
    pub(crate) restarts: Counter,
    pub(crate) reports: Counter,
    pub(crate) reports_refused: Counter,
    agents: Family<StateLabel, Gauge>,
    pub(crate) received: Histogram,
    pub(crate) applied: Histogram,
    pub(crate) transactions: Family<OutcomeLabel, Counter>,
    pub(crate) syncs: Family<OutcomeLabel, Counter>,
    leases: Gauge,
    pub(crate) leases_acquired: Counter,
    pub(crate) leases_lost: Counter,
    pub(crate) refusals: Family<LimitLabel, Counter>,
    pub(crate) used: Family<LimitLabel, Gauge>,
    limits: Family<LimitLabel, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ModeLabel {
    mode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct LimitLabel {
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StateLabel {
    state: &'static str,
}

/// From a millisecond to half an hour: from an agent that waits for it to one that had to be repaired.
fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 22))
}

// === impl Metrics ===

impl Default for Metrics {
    fn default() -> Self {
        Self {
            sessions: Gauge::default(),
            superseded: Counter::default(),
            answers: Family::default(),
            sent_bytes: Counter::default(),
            restarts: Counter::default(),
            reports: Counter::default(),
            reports_refused: Counter::default(),
            agents: Family::default(),
            received: latency(),
            applied: latency(),
            transactions: Family::default(),
            syncs: Family::default(),
            leases: Gauge::default(),
            leases_acquired: Counter::default(),
            leases_lost: Counter::default(),
            refusals: Family::default(),
            used: Family::default(),
            limits: Family::default(),
        }
    }
}

impl Metrics {
    /// Registers everything under the prefix `nimbus_bus`.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("nimbus_bus");
        let Self {
            sessions,
            superseded,
            answers,
            sent_bytes,
            restarts,
            reports,
            reports_refused,
            agents,
            received,
            applied,
            transactions,
            syncs,
            leases,
            leases_acquired,
            leases_lost,
            refusals,
            used,
            limits,
        } = metrics.clone();
        registry.register("sessions", "Subscriptions at the moment", sessions);
        registry.register("sessions_superseded", "Sessions ended by a newer one of the same agent", superseded);
        registry.register("answers", "Subscriptions answered, by mode", answers);
        registry.register("sent_bytes", "Bytes of frames handed to the transport", sent_bytes);
        registry.register("group_restarts", "Groups begun again because the reader was too slow", restarts);
        registry.register("reports", "Reports taken", reports);
        registry.register("reports_refused", "Reports refused, for whatever reason", reports_refused);
        registry.register("agents", "Agents that are remembered, by state", agents);
        registry.register("received_seconds", "From publishing to the report that it has arrived", received);
        registry.register("applied_seconds", "From publishing to the report that it is applied", applied);
        registry.register("transactions", "Transactions, by outcome", transactions);
        registry.register("syncs", "Publisher syncs, by outcome", syncs);
        registry.register("leases", "Leases that are held", leases);
        registry.register("leases_acquired", "Leases that were given to a new holder", leases_acquired);
        registry.register("leases_lost", "Renewals and writes that came after the lease was lost", leases_lost);
        registry.register("refusals", "Requests refused because a limit was reached", refusals);
        registry.register("used", "How much of a limit is used", used);
        registry.register("limit", "The limit as it is configured", limits);
        metrics
    }

    pub(crate) fn set_limits(&self, limits: &[(&'static str, u64)]) {
        for (limit, value) in limits {
            self.limits
                .get_or_create(&LimitLabel { limit })
                .set(i64::try_from(*value).unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn refuse(&self, limit: &'static str) {
        self.refusals.get_or_create(&LimitLabel { limit }).inc();
    }

    pub(crate) fn set_used(&self, limit: &'static str, used: usize) {
        self.used
            .get_or_create(&LimitLabel { limit })
            .set(i64::try_from(used).unwrap_or(i64::MAX));
    }

    /// How many agents are connected, away and lost.
    pub(crate) fn set_agents(&self, census: [usize; 3]) {
        for (state, count) in ["connected", "away", "lost"].into_iter().zip(census) {
            self.agents
                .get_or_create(&StateLabel { state })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.set_used("agents", census.iter().sum());
    }

    /// How many leases are held.
    pub(crate) fn set_leases(&self, held: usize) {
        self.leases.set(i64::try_from(held).unwrap_or(i64::MAX));
        self.set_used("leases", held);
    }

    /// One session more, or less.
    pub(crate) fn count_session(&self, change: i64) {
        self.sessions.inc_by(change);
        self.used.get_or_create(&LimitLabel { limit: "sessions" }).inc_by(change);
    }

    pub(crate) fn answer(&self, mode: nimbus_wire::v1::Mode) {
        self.answers.get_or_create(&ModeLabel { mode: mode.as_str_name().to_owned() }).inc();
    }

    pub(crate) fn transaction(&self, outcome: &'static str) {
        self.transactions.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn sync(&self, outcome: &'static str) {
        self.syncs.get_or_create(&OutcomeLabel { outcome }).inc();
    }
}
