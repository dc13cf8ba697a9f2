//! Counts agents, and names some of them.

use nimbus_core::{AgentId, ObjectKey, Revision};
use nimbus_wire::v1::{self, exclusion::Reason};
use tokio::time::{Duration, Instant};

use crate::fleet::{
    agent::Entry,
    exception::{Exception, millis},
    progress::{Marks, Standing, Verdict},
};

/// Counts agents exactly, and names at most so many of each sort.
#[derive(Debug)]
pub(crate) struct Tally {
    named: usize,
    now: Instant,
    lost_after: Duration,
    counts: v1::Propagation,
    min_applied: Option<Revision>,
    excluded: [(u32, Vec<String>); 3],
    received: Vec<u32>,
    applied: Vec<u32>,
}

/// What one agent says about one object.
pub(crate) type Said<'a> = Option<(&'a ObjectKey, &'a Exception)>;

const REASONS: [Reason; 3] = [Reason::Lost, Reason::NeverConnected, Reason::NotSubscribed];

// === impl Tally ===

impl Tally {
    pub(crate) fn new(named: usize, now: Instant, lost_after: Duration) -> Self {
        Self {
            named,
            now,
            lost_after,
            counts: v1::Propagation::default(),
            min_applied: None,
            excluded: Default::default(),
            received: Vec::new(),
            applied: Vec::new(),
        }
    }

    /// Makes room for so many agents at once.
    pub(crate) fn reserve(&mut self, agents: usize) {
        self.received.reserve(agents);
        self.applied.reserve(agents);
    }

    /// Counts an agent that the change is for.
    pub(crate) fn count(&mut self, id: &AgentId, entry: &Entry, marks: Marks, standing: Standing, said: Said<'_>) {
        let counts = &mut self.counts;
        counts.agents += 1;
        counts.received += u32::from(standing.received);
        self.min_applied = Some(self.min_applied.map_or(marks.applied, |least| least.min(marks.applied)));
        let said = |now| said.map(|(key, exception)| exception.to_wire(key, now));
        let named = |now| v1::AgentException { agent: id.to_string(), exception: said(now) };
        match standing.verdict {
            Verdict::Applied => counts.applied += 1,
            Verdict::Degraded => {
                counts.applied += 1;
                counts.degraded += 1;
                if counts.degradations.len() < self.named {
                    counts.degradations.push(named(self.now));
                }
            }
            Verdict::Failed | Verdict::FailedForGood => {
                counts.failed += 1;
                counts.failed_for_good += u32::from(standing.verdict == Verdict::FailedForGood);
                if counts.failures.len() < self.named {
                    counts.failures.push(named(self.now));
                }
            }
            Verdict::Pending => {
                counts.pending += 1;
                if counts.pending_agents.len() < self.named {
                    let (state, _) = entry.presence.state(self.now, self.lost_after);
                    counts.pending_agents.push(v1::PendingAgent {
                        agent: id.to_string(),
                        state: state.into(),
                        received: standing.received,
                        exception: said(self.now),
                        last_seen_ms: millis(self.now.saturating_duration_since(entry.last_seen)),
                    });
                }
            }
        }
    }

    /// Notes an agent that the change is for, but that does not count.
    pub(crate) fn exclude(&mut self, reason: Reason, id: &AgentId) {
        let Some(at) = REASONS.iter().position(|other| *other == reason) else { return };
        let (count, agents) = &mut self.excluded[at];
        *count += 1;
        if agents.len() < self.named {
            agents.push(id.to_string());
        }
    }

    /// Notes how long it took an agent to get, and to apply, what was published at that time.
    pub(crate) fn time(&mut self, published: Instant, received: Option<Instant>, applied: Option<Instant>) {
        let since = |at: Instant| u32::try_from(millis(at.saturating_duration_since(published))).unwrap_or(u32::MAX);
        self.received.extend(received.map(since));
        self.applied.extend(applied.map(since));
    }

    /// The counts as they travel.
    pub(crate) fn into_wire(mut self) -> v1::Propagation {
        let excluded = REASONS.into_iter().zip(self.excluded).filter(|(_, (count, _))| *count > 0);
        v1::Propagation {
            min_applied: self.min_applied.unwrap_or_default().0,
            excluded: excluded
                .map(|(reason, (count, agents))| v1::Exclusion { reason: reason.into(), count, agents })
                .collect(),
            received_latency: latency(&mut self.received),
            applied_latency: latency(&mut self.applied),
            ..self.counts
        }
    }
}

/// Percentiles by their rank: the smallest value that so many in a hundred do not exceed.
pub(crate) fn latency(samples: &mut [u32]) -> Option<v1::Latency> {
    let last = samples.len().checked_sub(1)?;
    let (mut from, mut ranks) = (0, [0; 4]);
    for (rank, percent) in ranks.iter_mut().zip([50, 90, 99, 100]) {
        let at = (samples.len() * percent).div_ceil(100).saturating_sub(1).min(last);
        // What is before the rank found last is not above it.
        *rank = u64::from(*samples[from..].select_nth_unstable(at - from).1);
        from = at;
    }
    let [p50_ms, p90_ms, p99_ms, max_ms] = ranks;
    let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    Some(v1::Latency { count, p50_ms, p90_ms, p99_ms, max_ms })
}
