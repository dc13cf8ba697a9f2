//! Latencies by kind, of so many kinds.

use std::sync::Arc;

use nimbus_core::Kind;
use parking_lot::RwLock;
use prometheus_client::metrics::{family::Family, histogram::Histogram};

use crate::metrics::{labels::KindLabel, latency};

/// Latencies by kind. The first kinds that there are have a place of their own, all others share one, so that nobody can
/// make up so many kinds that those who read metrics suffer.
#[derive(Debug, Clone)]
pub(crate) struct KindLatencies {
    family: Family<KindLabel, Histogram>,
    known: Arc<RwLock<Vec<(Kind, Histogram)>>>,
}

/// Kinds with a place of their own: a controller or two have a dozen, and each takes 25 lines of metrics.
const MAX_KINDS: usize = 32;

/// What the others are called, and what is about several kinds. No kind is called like this: they have a dot.
const OTHER: &str = "other";

// === impl KindLatencies ===

impl KindLatencies {
    pub(crate) fn family(&self) -> &Family<KindLabel, Histogram> {
        &self.family
    }

    /// Begins to count at zero.
    pub(crate) fn prepare(&self) {
        drop(self.histogram(None));
    }

    /// It took so long with a change of this kind, or of several.
    pub(crate) fn observe(&self, kind: Option<&Kind>, seconds: f64) {
        self.histogram(kind).observe(seconds);
    }

    fn histogram(&self, kind: Option<&Kind>) -> Histogram {
        let make = |kind: &str| self.family.get_or_create(&KindLabel { kind: kind.to_owned() }).clone();
        let Some(kind) = kind else { return make(OTHER) };
        let find = |known: &[(Kind, Histogram)]| {
            known.iter().find(|(other, _)| other == kind).map(|(_, histogram)| histogram.clone())
        };
        if let Some(histogram) = find(&self.known.read()) {
            return histogram;
        }
        let mut known = self.known.write();
        if let Some(histogram) = find(&known) {
            return histogram;
        }
        if known.len() >= MAX_KINDS {
            return make(OTHER);
        }
        let histogram = make(kind.as_str());
        known.push((kind.clone(), histogram.clone()));
        histogram
    }
}

impl Default for KindLatencies {
    fn default() -> Self {
        Self { family: Family::new_with_constructor(latency), known: Arc::default() }
    }
}

#[cfg(test)]
mod tests;
