//! How long it takes until everybody has a change, of some of them.

use nimbus_core::{Revision, Selector};
use nimbus_store::{Fields, State};
use tokio::time::{Duration, Instant};

use crate::{
    fleet::{Fleet, propagation::Survey, target::Aim},
    inner::Inner,
};

/// Follows one transaction at a time, until all agents that it is for have applied it.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    open: Option<Revision>,
    last: Revision,
}

/// What came of a transaction that was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampled {
    /// All agents that it is for have applied it, the last of them after this long.
    Took(Duration),
    /// Some had not after a long time.
    GivenUp,
}

/// To look at every agent takes a millisecond or two for ten thousand, so that this is less than a hundredth of one core.
/// The times themselves are exact, however late somebody looks.
const INTERVAL: Duration = Duration::from_millis(250);

/// An agent that takes longer must not hide what comes after. It is counted.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl Inner ===

impl Inner {
    /// Samples whenever something has happened, but not more often than once in a while.
    pub(crate) async fn keep_sampling(&self) {
        let mut sampler = Sampler::default();
        loop {
            let seen = self.fleet.activity.count();
            match sampler.look(&self.fleet, &self.store.state(), &*self.fields, Instant::now()) {
                Some(Sampled::Took(time)) => self.metrics.propagated.observe(time.as_secs_f64()),
                Some(Sampled::GivenUp) => drop(self.metrics.unpropagated.inc()),
                None => {}
            }
            let more = self.fleet.activity.beyond(seen);
            if sampler.rests(&self.fleet) {
                more.await;
            } else if sampler.open.is_some() {
                // If nothing happens any more, it is given up all the same.
                let _ = tokio::time::timeout(PATIENCE, more).await;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

// === impl Sampler ===

impl Sampler {
    /// Looks how far the transaction has come, or takes the newest one if none is open.
    pub(crate) fn look(&mut self, fleet: &Fleet, state: &State, fields: &dyn Fields, now: Instant) -> Option<Sampled> {
        // One that readers do not see yet is there the next time.
        let newest = || {
            fleet
                .newest_published()
                .filter(|newest| (self.last.next()..=state.head()).contains(newest))
        };
        let revision = self.open.or_else(newest)?;
        *self = Self { open: None, last: revision };
        let published = fleet.published_at(revision)?;
        fleet.tick(now);
        let survey = Survey { selector: Selector::default(), count_lost: false, max_agents: 1 };
        let propagation = survey.count(fleet, state, fields, &Aim::Revision(revision), now);
        if propagation.applied == propagation.agents {
            // Without a time, nobody was concerned; or everything in it has changed again, and nobody can tell.
            let latency = propagation.applied_latency?;
            return Some(Sampled::Took(Duration::from_millis(latency.max_ms)));
        }
        if now.saturating_duration_since(published) > PATIENCE {
            return Some(Sampled::GivenUp);
        }
        self.open = Some(revision);
        None
    }

    /// Whether there is nothing to look at before something happens: what was published while another transaction was followed
    /// is next, though it may have been the last thing to happen.
    pub(crate) fn rests(&self, fleet: &Fleet) -> bool {
        self.open.is_none() && fleet.newest_published().is_none_or(|newest| newest <= self.last)
    }
}
