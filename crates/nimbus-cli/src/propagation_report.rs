//! How far something has come, for people: numbers, and the agents that do not have it, with the reason.

#[cfg(test)]
mod tests;

use clap::Args;
use nimbus_wire::v1::{self, AgentState, exclusion::Reason};

use crate::{
    age::{age, span},
    agent_table::{reason, state_word},
    output::{Cell, Column, Table, Tone},
};

/// Whose propagation is asked about. To be flattened into the arguments of commands that ask.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SurveyArguments {
    /// The namespace of the object.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Only agents whose labels match, such as `zone in (a,b),role=edge,!canary`.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,

    /// Lost agents count, too.
    #[arg(long)]
    pub(crate) count_lost: bool,

    /// Name at most this many agents of each sort. Counts are always exact.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_agents: Option<u32>,
}

/// An agent that does not have it as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Laggard {
    pub(crate) agent: String,
    pub(crate) standing: Standing,
    pub(crate) why: String,
}

/// What an agent has made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Failed,
    Pending,
    Degraded,
    Excluded,
}

/// Agents that have not applied it: those that failed, then those that are pending. With more than were named, there are
/// more of them than there are entries.
pub(crate) fn missing(propagation: &v1::Propagation) -> Vec<Laggard> {
    let failed = propagation.failures.iter().map(|failure| Laggard {
        agent: failure.agent.clone(),
        standing: Standing::Failed,
        why: failure.exception.as_ref().map(reason).unwrap_or_default(),
    });
    let pending = propagation.pending_agents.iter().map(|agent| Laggard {
        agent: agent.agent.clone(),
        standing: Standing::Pending,
        why: waits_because(agent),
    });
    failed.chain(pending).collect()
}

/// The same, with those that are degraded or do not count.
pub(crate) fn laggards(propagation: &v1::Propagation) -> Vec<Laggard> {
    let degraded = propagation.degradations.iter().map(|degradation| Laggard {
        agent: degradation.agent.clone(),
        standing: Standing::Degraded,
        why: degradation.exception.as_ref().map(reason).unwrap_or_default(),
    });
    let excluded = propagation.excluded.iter().flat_map(|exclusion| {
        exclusion.agents.iter().map(|agent| Laggard {
            agent: agent.clone(),
            standing: Standing::Excluded,
            why: excluded_because(exclusion.reason()).to_owned(),
        })
    });
    missing(propagation).into_iter().chain(degraded).chain(excluded).collect()
}

/// How many there are of all sorts, named or not.
pub(crate) fn count(propagation: &v1::Propagation) -> u32 {
    propagation.failed + propagation.pending + propagation.degraded + excluded(propagation)
}

/// Agents that do not count.
pub(crate) fn excluded(propagation: &v1::Propagation) -> u32 {
    propagation.excluded.iter().map(|exclusion| exclusion.count).sum()
}

/// Whether no agent has asked for it, as for what only controllers read.
pub(crate) fn concerns_nobody(propagation: &v1::Propagation) -> bool {
    propagation.agents == 0 && propagation.excluded.iter().all(|exclusion| exclusion.reason() == Reason::NotSubscribed)
}

/// The numbers.
pub(crate) fn counts(propagation: &v1::Propagation) -> Table {
    let titles = ["AGENTS", "RECEIVED", "APPLIED", "DEGRADED", "FAILED", "PENDING", "EXCLUDED"];
    let mut table = Table::new(titles.map(Column::new));
    let all = propagation.applied == propagation.agents;
    let troubled = |count: u32, tone| Cell::from(count).tone(if count > 0 { tone } else { Tone::Plain });
    table.row([
        Cell::from(propagation.agents),
        Cell::from(propagation.received),
        Cell::from(propagation.applied).tone(if all { Tone::Good } else { Tone::Plain }),
        troubled(propagation.degraded, Tone::Warning),
        troubled(propagation.failed, Tone::Bad),
        troubled(propagation.pending, Tone::Warning),
        troubled(excluded(propagation), Tone::Warning),
    ]);
    table
}

/// Those who do not have it as they should, and why.
pub(crate) fn table(laggards: &[Laggard]) -> Table {
    let mut table = Table::new(["AGENT", "STANDING", "WHY"].map(Column::new));
    for Laggard { agent, standing, why } in laggards {
        table.row([Cell::from(agent), Cell::from(standing.word()).tone(standing.tone()), Cell::from(why)]);
    }
    table
}

/// How long it took, if that is known of anybody.
pub(crate) fn latencies(propagation: &v1::Propagation) -> Option<Table> {
    let known = [("received", &propagation.received_latency), ("applied", &propagation.applied_latency)];
    let known: Vec<_> = known
        .into_iter()
        .filter_map(|(what, latency)| Some((what, latency.as_ref().filter(|latency| latency.count > 0)?)))
        .collect();
    if known.is_empty() {
        return None;
    }
    let mut table = Table::new(["LATENCY", "AGENTS", "P50", "P90", "P99", "MAX"].map(Column::new));
    for (what, latency) in known {
        let v1::Latency { count, p50_ms, p90_ms, p99_ms, max_ms } = *latency;
        let spans = [p50_ms, p90_ms, p99_ms, max_ms].map(|ms| Cell::from(span(ms)));
        table.row([Cell::from(what), Cell::from(count)].into_iter().chain(spans));
    }
    Some(table)
}

fn waits_because(agent: &v1::PendingAgent) -> String {
    if let Some(exception) = &agent.exception {
        return reason(exception);
    }
    match (agent.state(), agent.received) {
        (_, true) => "has received it, and is at work".to_owned(),
        (AgentState::Connected, false) => "on its way".to_owned(),
        (state, false) => format!("{}, last seen {} ago", state_word(state), age(agent.last_seen_ms)),
    }
}

fn excluded_because(reason: Reason) -> &'static str {
    match reason {
        Reason::Lost => "lost: away for longer than the bus waits",
        Reason::NeverConnected => "named, but never seen by this bus",
        Reason::NotSubscribed => "meant, but not subscribed to the kind, or its filter leaves the object out",
        Reason::Unspecified => "for a reason that this command does not know",
    }
}

// === impl Standing ===

impl Standing {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Pending => "pending",
            Self::Degraded => "degraded",
            Self::Excluded => "excluded",
        }
    }

    fn tone(self) -> Tone {
        if self == Self::Failed { Tone::Bad } else { Tone::Warning }
    }
}
