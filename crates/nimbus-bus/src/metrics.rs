//! What operators watch.

mod disk;
mod kinds;
mod labels;
mod reasons;

use std::{future::Future, sync::atomic::AtomicU64};

use nimbus_core::Kind;
use nimbus_store::{Effect, Outcome, Refused};
use nimbus_wire::v1::Mode;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use tokio::time::Instant;

pub(crate) use self::disk::DiskTimes;
use self::{
    kinds::KindLatencies,
    labels::{CodeLabel, EffectLabel, LimitLabel, ModeLabel, OutcomeLabel, PhaseLabel, ReasonLabel, StateLabel},
};

/// A gauge of seconds.
type Seconds = Gauge<f64, AtomicU64>;

/// Defines one metric on each line: what it is called in here, its type, how it begins, its name, and what it says.
macro_rules! metrics {
    ($($field:ident: $type:ty = $new:expr, $name:literal, $help:literal;)*) => {
        /// What operators watch. Names of objects, agents and publishers are never labels.
        #[derive(Debug, Clone)]
        pub struct Metrics {
            $(pub(crate) $field: $type,)*
            pub(crate) kinds: KindLatencies,
        }

        impl Default for Metrics {
            fn default() -> Self {
                Self { $($field: $new,)* kinds: KindLatencies::default() }
            }
        }

        impl Metrics {
            /// Registers everything under the prefix `nimbus_bus`.
            pub fn new(registry: &mut Registry) -> Self {
                let metrics = Self::default();
                let registry = registry.sub_registry_with_prefix("nimbus_bus");
                $(registry.register($name, $help, metrics.$field.clone());)*
                let help = "From publishing to the report that it is applied, by kind";
                registry.register("kind_applied_seconds", help, metrics.kinds.family().clone());
                metrics.prepare();
                metrics
            }
        }
    };
}

metrics! {
    sessions: Gauge = Gauge::default(), "sessions", "Subscriptions at the moment";
    subscriptions: Family<StateLabel, Gauge> = Family::default(), "subscriptions", "Subscriptions at the moment, by state";
    superseded: Counter = Counter::default(), "sessions_superseded", "Sessions ended by a newer one of the same agent";
    answers: Family<ModeLabel, Counter> = Family::default(), "answers", "Subscriptions answered, by mode";
    connections: Gauge = Gauge::default(), "connections", "Connections at the moment";
    accepted: Counter = Counter::default(), "connections_accepted", "Connections that were taken";
    silent: Counter = Counter::default(), "connections_silent", "Connections ended because nothing came";
    errors: Family<CodeLabel, Counter> = Family::default(), "errors", "Calls that failed, by gRPC code";
    sent_bytes: Counter = Counter::default(), "sent_bytes", "Bytes of frames handed to the transport";
    sent_batches: Counter = Counter::default(), "sent_batches", "Batches of events handed to the transport";
    sent_events: Counter = Counter::default(), "sent_events", "Objects put and removed at subscribers";
    coalesced: Counter = Counter::default(), "coalesced_events", "Changes that subscribers were spared by later ones";
    restarts: Counter = Counter::default(), "group_restarts", "Groups begun again because the reader was too slow";
    snapshot_bytes: Counter = Counter::default(), "snapshot_bytes", "Bytes of snapshots that were admitted, nearly";
    snapshot_wait: Seconds = Gauge::default(), "snapshot_wait_seconds", "How long a snapshot asked for now would wait";
    feeds: Gauge = Gauge::default(), "feeds", "Different subscriptions, each encoded once";
    filters: Gauge = Gauge::default(), "filters", "Different filters that somebody is subscribed with";
    reports: Counter = Counter::default(), "reports", "Reports taken";
    reports_refused: Counter = Counter::default(), "reports_refused", "Reports refused, for whatever reason";
    agents: Family<StateLabel, Gauge> = Family::default(), "agents", "Agents that are remembered, by state";
    agents_behind: Gauge = Gauge::default(), "agents_behind", "Agents that are not lost and not in sync";
    exceptions: Family<PhaseLabel, Gauge> = Family::default(), "exceptions", "Objects that agents could not apply, by phase";
    lag_revisions: Gauge = Gauge::default(), "lag_revisions_max", "Of the agent that is most revisions behind";
    lag_revisions_sum: Gauge = Gauge::default(), "lag_revisions_sum", "Revisions behind, of all agents";
    lag_seconds: Seconds = Gauge::default(), "lag_seconds_max", "Age of the oldest change that an agent has not applied";
    lag_seconds_sum: Seconds = Gauge::default(), "lag_seconds_sum", "The same, of all agents";
    received: Histogram = latency(), "received_seconds", "From publishing to the report that it has arrived";
    applied: Histogram = latency(), "applied_seconds", "From publishing to the report that it is applied";
    propagated: Histogram = latency(), "propagated_seconds", "From publishing to when all agents have applied it, sampled";
    unpropagated: Counter = Counter::default(), "propagations_given_up", "Samples that not all agents had applied in time";
    transactions: Family<OutcomeLabel, Counter> = Family::default(), "transactions", "Transactions, by outcome";
    refused: Family<ReasonLabel, Counter> = Family::default(), "transactions_refused", "Transactions refused, by reason";
    changes: Family<EffectLabel, Counter> = Family::default(), "changes", "Steps of transactions and syncs, by what they did";
    commit: Histogram = commit_times(), "commit_seconds", "From a write to when it is durable and visible";
    disk: Histogram = commit_times(), "store_write_seconds", "Writing one group of writes to disk";
    disk_group: Histogram = group_sizes(), "store_group_writes", "Writes in one group";
    disk_bytes: Counter = Counter::default(), "store_written_bytes", "Bytes of new objects written to disk";
    disk_failures: Counter = Counter::default(), "store_failures", "Groups that could not be written";
    store_failed: Gauge = Gauge::default(), "store_failed", "1 if the disk has failed, and nothing is accepted until a restart";
    ready: Gauge = Gauge::default(), "ready", "1 if nothing keeps the bus from being ready";
    revision: Gauge = Gauge::default(), "revision", "The newest revision";
    horizon: Gauge = Gauge::default(), "horizon", "The revision before which nobody can resume without a digest";
    incomplete: Gauge = Gauge::default(), "kinds_incomplete", "Kinds that wait for syncs of publishers";
    silence: Seconds = Gauge::default(), "publisher_silence_seconds", "Since the most silent publisher was heard";
    syncs: Family<OutcomeLabel, Counter> = Family::default(), "syncs", "Publisher syncs, by outcome";
    leases: Gauge = Gauge::default(), "leases", "Leases that are held";
    leases_acquired: Counter = Counter::default(), "leases_acquired", "Leases that were given to a new holder";
    leases_lost: Counter = Counter::default(), "leases_lost", "Renewals and writes that came after the lease was lost";
    leases_expired: Counter = Counter::default(), "leases_expired", "Leases that ended without being given back";
    refusals: Family<LimitLabel, Counter> = Family::default(), "refusals", "Requests refused because a limit was reached";
    used: Family<LimitLabel, Gauge> = Family::default(), "used", "How much of a limit is used";
    limits: Family<LimitLabel, Gauge> = Family::default(), "limit", "The limit as it is configured";
}

/// From a millisecond to half an hour: from an agent that waits for it to one that had to be repaired.
fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 22))
}

/// From a tenth of a millisecond, in memory, to six seconds, on a disk that is about to fail.
fn commit_times() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 17))
}

/// From one write to as many as may wait.
fn group_sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 8))
}

/// What a step can do.
const EFFECTS: [&str; 6] = ["created", "updated", "unchanged", "deleted", "deleting", "absent"];

/// A count as gauges have it.
pub(crate) fn count(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

// === impl Metrics ===

impl Metrics {
    /// Begins to count at zero what has labels: who watches for the first error would not see it otherwise.
    fn prepare(&self) {
        self.set_agents([0; 3]);
        self.set_subscriptions([0; 3]);
        self.set_exceptions([0; 3]);
        self.set_leases(0);
        ["sessions", "watches"].into_iter().for_each(|limit| self.set_used(limit, 0));
        for mode in [Mode::Delta, Mode::Unchanged, Mode::Digest, Mode::Snapshot, Mode::Waiting] {
            drop(self.answers.get_or_create(&ModeLabel { mode: mode.as_str_name() }));
        }
        for outcome in ["committed", "refused"] {
            drop(self.transactions.get_or_create(&OutcomeLabel { outcome }));
        }
        for outcome in ["ended", "aborted"] {
            drop(self.syncs.get_or_create(&OutcomeLabel { outcome }));
        }
        for effect in EFFECTS {
            drop(self.changes.get_or_create(&EffectLabel { effect }));
        }
        for reason in reasons::ALL {
            drop(self.refused.get_or_create(&ReasonLabel { reason }));
        }
        for code in labels::FAILURES {
            drop(self.errors.get_or_create(&CodeLabel { code: labels::code_name(code) }));
        }
        self.kinds.prepare();
    }

    pub(crate) fn set_limits(&self, limits: &[(&'static str, u64)]) {
        for (limit, value) in limits {
            self.limits.get_or_create(&LimitLabel { limit }).set(count(*value));
            drop(self.refusals.get_or_create(&LimitLabel { limit }));
        }
    }

    pub(crate) fn refuse(&self, limit: &'static str) {
        self.refusals.get_or_create(&LimitLabel { limit }).inc();
    }

    pub(crate) fn set_used(&self, limit: &'static str, used: usize) {
        self.used.get_or_create(&LimitLabel { limit }).set(count(used));
    }

    /// How many agents are connected, away and lost.
    pub(crate) fn set_agents(&self, census: [usize; 3]) {
        for (state, agents) in ["connected", "away", "lost"].into_iter().zip(census) {
            self.agents.get_or_create(&StateLabel { state }).set(count(agents));
        }
        self.set_used("agents", census.iter().sum());
    }

    /// How many subscriptions are live, wait for publishers, and wait for their turn.
    pub(crate) fn set_subscriptions(&self, census: [usize; 3]) {
        for (state, subscriptions) in ["live", "waiting", "queued"].into_iter().zip(census) {
            self.subscriptions.get_or_create(&StateLabel { state }).set(count(subscriptions));
        }
    }

    /// How many objects failed, wait, and are degraded at agents.
    pub(crate) fn set_exceptions(&self, census: [u64; 3]) {
        for (phase, exceptions) in ["failed", "pending", "degraded"].into_iter().zip(census) {
            self.exceptions.get_or_create(&PhaseLabel { phase }).set(count(exceptions));
        }
    }

    /// How many leases are held.
    pub(crate) fn set_leases(&self, held: usize) {
        self.leases.set(count(held));
        self.set_used("leases", held);
    }

    /// One session more, or less.
    pub(crate) fn count_session(&self, change: i64) {
        self.sessions.inc_by(change);
        self.used.get_or_create(&LimitLabel { limit: "sessions" }).inc_by(change);
    }

    pub(crate) fn answer(&self, mode: Mode) {
        self.answers.get_or_create(&ModeLabel { mode: mode.as_str_name() }).inc();
    }

    pub(crate) fn transaction(&self, outcome: &'static str) {
        self.transactions.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn sync(&self, outcome: &'static str) {
        self.syncs.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// A call ended like this; one that ended well is not counted.
    pub(crate) fn error(&self, code: tonic::Code) {
        if code == tonic::Code::Ok {
            return;
        }
        self.errors.get_or_create(&CodeLabel { code: labels::code_name(code) }).inc();
    }

    /// What the steps of a transaction did.
    pub(crate) fn count_changes(&self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            let effect = match outcome.effect {
                Effect::Created => "created",
                Effect::Updated => "updated",
                Effect::Deleted => "deleted",
                Effect::Absent => "absent",
                Effect::Deleting => "deleting",
                _ => "unchanged",
            };
            self.changes.get_or_create(&EffectLabel { effect }).inc();
        }
    }

    /// A transaction was refused.
    pub(crate) fn refuse_transaction(&self, refused: &Refused) {
        self.transaction("refused");
        self.refused.get_or_create(&ReasonLabel { reason: reasons::of(refused) }).inc();
        match refused {
            Refused::Full { limit, .. } => self.refuse(limit),
            Refused::Step { reason, .. } => reason.limit().into_iter().for_each(|limit| self.refuse(limit)),
            Refused::LeaseLost { .. } => {
                self.leases_lost.inc();
            }
            _ => {}
        }
    }

    /// Waits for a write to become durable, and measures it.
    pub(crate) async fn committing<T>(&self, settled: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let done = settled.await;
        self.commit.observe((Instant::now() - begun).as_secs_f64());
        done
    }

    /// An agent has applied what was published so long ago.
    pub(crate) fn observe_applied(&self, kind: Option<&Kind>, seconds: f64) {
        self.applied.observe(seconds);
        self.kinds.observe(kind, seconds);
    }
}
