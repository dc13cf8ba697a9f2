//! How long it takes until everybody has a change, of some of them.

use nimbus_core::{Revision, Selector};
use tokio::time::{Duration, Instant};

use crate::{
    fleet::{propagation::Survey, target::Target},
    inner::Inner,
};

/// The transaction that is being followed, and the last one that was.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    open: Option<Revision>,
    last: Revision,
}

/// To look at every agent takes a millisecond or two for ten thousand. The times themselves are exact, however late somebody
/// looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// An agent that takes longer must not hide what comes after. It is counted.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Inner ===

impl Inner {
    /// Follows one transaction at a time, until all agents that it is for have applied it.
    pub(crate) async fn keep_sampling(&self) {
        let mut sample = Sample::default();
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.sample(&mut sample, Instant::now());
        }
    }

    pub(crate) fn sample(&self, sample: &mut Sample, now: Instant) {
        let newest = || self.fleet.newest_published().filter(|newest| *newest > sample.last);
        let Some(revision) = sample.open.or_else(newest) else { return };
        *sample = Sample { open: Some(revision), last: revision };
        let survey = Survey { selector: Selector::default(), count_lost: false, max_agents: 1 };
        let (Ok(propagation), Some(published)) =
            (survey.of(self, &Target::Revision(revision), now), self.fleet.published_at(revision))
        else {
            sample.open = None;
            return;
        };
        if propagation.applied == propagation.agents {
            // Nobody was concerned, or all of them had it before this was looked at.
            if let Some(latency) = propagation.applied_latency {
                self.metrics.propagated.observe(Duration::from_millis(latency.max_ms).as_secs_f64());
            }
            sample.open = None;
        } else if now.saturating_duration_since(published) > PATIENCE {
            self.metrics.unpropagated.inc();
            sample.open = None;
        }
    }
}
