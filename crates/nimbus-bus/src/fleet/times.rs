//! When transactions were published, for the latest ones.

use std::collections::VecDeque;

use nimbus_core::{Kind, Revision};
use tokio::time::Instant;

/// When the latest transactions were published, in the order of their revisions.
#[derive(Debug, Default)]
pub(crate) struct PublishTimes(VecDeque<(Revision, Published)>);

/// When a transaction was published, and of which kind its changes are, if all are of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) at: Instant,
    pub(crate) kind: Option<Kind>,
}

/// A minute and a half at two hundred transactions per second, in 700 KB. Who asks for the latency of something older is
/// told that it is not known.
const KEPT: usize = 16_384;

// === impl PublishTimes ===

impl PublishTimes {
    /// Takes note of a transaction. Those who commit at the same time may come in any order.
    pub(crate) fn record(&mut self, revision: Revision, kind: Option<Kind>, now: Instant) {
        let at = self.0.partition_point(|(other, _)| *other < revision);
        if self.0.get(at).is_some_and(|(other, _)| *other == revision) {
            return;
        }
        self.0.insert(at, (revision, Published { at: now, kind }));
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// When a transaction was published, if that is still known.
    pub(crate) fn get(&self, revision: Revision) -> Option<&Published> {
        let at = self.0.binary_search_by_key(&revision, |(other, _)| *other).ok()?;
        Some(&self.0[at].1)
    }

    /// The newest transaction that is known.
    pub(crate) fn newest(&self) -> Option<Revision> {
        self.0.back().map(|(revision, _)| *revision)
    }
}
