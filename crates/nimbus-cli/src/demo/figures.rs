//! Figures, as people read them.

use nimbus_wire::v1::{self, AgentState};

/// `812 B`, `1.6 kB`, `2.4 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// `1 event`, `5 events`.
pub(crate) fn events(count: u64) -> String {
    if count == 1 { "1 event".to_owned() } else { format!("{count} events") }
}

/// How far something has come, and who stands out.
pub(crate) fn propagation(of: &v1::Propagation) -> String {
    let mut text = format!("{} of {} agents have applied it", of.applied, of.agents);
    for failure in &of.failures {
        text.push_str(&format!("; {}", self::failure(failure)));
    }
    if of.pending > 0 {
        let pending = |agent: &v1::PendingAgent| match agent.state() {
            AgentState::Connected => agent.agent.clone(),
            _ => format!("{} (away)", agent.agent),
        };
        let names: Vec<_> = of.pending_agents.iter().take(3).map(pending).collect();
        let more = if of.pending as usize > names.len() { ", …" } else { "" };
        text.push_str(&format!("; {} pending: {}{more}", of.pending, names.join(", ")));
    }
    text
}

/// Who has not got it, and why.
pub(crate) fn failure(failure: &v1::AgentException) -> String {
    let exception = failure.exception.clone().unwrap_or_default();
    format!("{} has not: {}: {}", failure.agent, exception.code, exception.message)
}

/// From publishing to the acknowledgement.
pub(crate) fn latency(of: &v1::Propagation) -> String {
    let v1::Latency { p50_ms, p99_ms, max_ms, .. } = of.applied_latency.unwrap_or_default();
    format!("publish to acknowledged: p50 {p50_ms} ms, p99 {p99_ms} ms, all within {max_ms} ms")
}

#[cfg(test)]
mod tests;
