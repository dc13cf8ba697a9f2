//! What operators watch.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// What operators watch. Names of objects and buses are never labels.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) connected: Gauge,
    pub(crate) detached: Gauge,
    pub(crate) connections: Counter,
    pub(crate) losses: Counter,
    pub(crate) answers: Family<ModeLabel, Counter>,
    pub(crate) mismatches: Counter,
    pub(crate) frames: Counter,
    pub(crate) changes: Counter,
    pub(crate) calls: Family<CallLabel, Counter>,
    pub(crate) drift: Counter,
    pub(crate) reports: Counter,
    pub(crate) report_errors: Counter,
    pub(crate) objects: Gauge,
    pub(crate) applied: Gauge,
    pub(crate) running: Gauge,
    pub(crate) unfinished: Gauge,
    pub(crate) failed: Gauge,
    pub(crate) cache_failing: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ModeLabel {
    pub(crate) mode: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CallLabel {
    pub(crate) call: &'static str,
    pub(crate) outcome: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Registers everything under the prefix `nimbus_agent`.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix("nimbus_agent");
        let Self {
            connected,
            detached,
            connections,
            losses,
            answers,
            mismatches,
            frames,
            changes,
            calls,
            drift,
            reports,
            report_errors,
            objects,
            applied,
            running,
            unfinished,
            failed,
            cache_failing,
        } = metrics.clone();
        registry.register("connected", "Whether there is a subscription", connected);
        registry.register("detached", "Whether it works from its last good state, without a bus", detached);
        registry.register("connections", "Subscriptions that began", connections);
        registry.register("losses", "Subscriptions that ended or could not begin", losses);
        registry.register("answers", "How the bus answered, by mode", answers);
        registry.register("digest_mismatches", "Times that the bus held something else than this agent", mismatches);
        registry.register("frames", "Frames received", frames);
        registry.register("changes", "Objects put or removed by the bus", changes);
        registry.register("calls", "Calls of handlers, by outcome", calls);
        registry.register("drift", "Objects found otherwise than they were applied", drift);
        registry.register("reports", "Reports that the bus took", reports);
        registry.register("report_errors", "Reports that did not arrive", report_errors);
        registry.register("objects", "Objects that should be here", objects);
        registry.register("applied", "Objects that are applied", applied);
        registry.register("running", "Handlers running at the moment", running);
        registry.register("unfinished", "Objects that are not as they should be", unfinished);
        registry.register("failed", "Objects whose last attempt failed", failed);
        registry.register("cache_failing", "Whether the disk refuses what should survive a restart", cache_failing);
        metrics
    }

    pub(crate) fn call(&self, call: &'static str, outcome: &'static str) {
        self.calls.get_or_create(&CallLabel { call, outcome }).inc();
    }
}
