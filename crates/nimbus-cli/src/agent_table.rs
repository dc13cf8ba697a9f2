//! Agents as rows of a table.

#[cfg(test)]
mod tests;

use nimbus_wire::v1::{self, AgentState, Phase};

use crate::{
    age::age,
    object_table::{key_name, labels},
    output::{Cell, Column, Table, Tone},
};

/// An empty table of agents.
pub(crate) fn columns() -> Table {
    Table::new([
        Column::new("AGENT"),
        Column::new("STATE"),
        Column::new("POSITION"),
        Column::new("LAG"),
        Column::new("FAILED"),
        Column::new("PENDING"),
        Column::new("DEGRADED"),
        Column::new("SOFTWARE"),
        Column::wide("SEEN"),
        Column::wide("LABELS"),
        Column::wide("KINDS"),
        Column::optional("WHY"),
    ])
}

/// A row of it. Why something failed is said if exceptions were asked for.
pub(crate) fn row(agent: &v1::AgentInfo) -> [Cell; 12] {
    let troubled = |count: u32, tone| Cell::from(count).tone(if count > 0 { tone } else { Tone::Plain });
    let kinds = if agent.kinds.is_empty() { "all".to_owned() } else { agent.kinds.join(",") };
    [
        Cell::from(&agent.agent),
        state(agent),
        position(agent),
        lag(agent),
        troubled(agent.failed, Tone::Bad),
        troubled(agent.pending, Tone::Warning),
        troubled(agent.degraded, Tone::Warning),
        Cell::from(&agent.software),
        Cell::from(format!("{} ago", age(agent.last_seen_ms))),
        Cell::from(labels(&agent.labels)),
        Cell::from(kinds),
        Cell::from(failures(&agent.exceptions)),
    ]
}

/// Whether it is there, and if not, for how long.
pub(crate) fn state(agent: &v1::AgentInfo) -> Cell {
    let word = state_word(agent.state());
    match agent.state() {
        AgentState::Connected => Cell::from(word).tone(Tone::Good),
        AgentState::Away => Cell::from(format!("{word} {}", age(agent.state_ms))).tone(Tone::Warning),
        _ => Cell::from(format!("{word} {}", age(agent.state_ms))).tone(Tone::Bad),
    }
}

/// The same without a time.
pub(crate) fn state_word(state: AgentState) -> &'static str {
    match state {
        AgentState::Connected => "connected",
        AgentState::Away => "away",
        AgentState::Lost => "lost",
        AgentState::Unspecified => "unknown",
    }
}

/// Whether it has not applied the last change that concerns it.
pub(crate) fn is_behind(agent: &v1::AgentInfo) -> bool {
    agent.applied < agent.last_relevant
}

/// How far it is, and of what.
pub(crate) fn position(agent: &v1::AgentInfo) -> Cell {
    if is_behind(agent) {
        return Cell::from(format!("{} of {}", agent.applied, agent.last_relevant)).tone(Tone::Warning);
    }
    Cell::from(agent.applied)
}

/// For how long it has been behind.
pub(crate) fn lag(agent: &v1::AgentInfo) -> Cell {
    match (is_behind(agent), agent.lag_ms) {
        (false, _) => Cell::from(""),
        (true, 0) => Cell::from("long").tone(Tone::Warning),
        (true, ms) => Cell::from(age(ms)).tone(Tone::Warning),
    }
}

/// What an agent says of an object: the code, the message, and what comes next.
pub(crate) fn reason(exception: &v1::Exception) -> String {
    let waits: Vec<String> = exception.waits_for.iter().map(key_name).collect();
    let waits = if waits.is_empty() { String::new() } else { format!("waits for {}", waits.join(", ")) };
    let message = exception.message.trim();
    // An agent that says something says that, too.
    let said = [&*exception.code, if message.is_empty() { &waits } else { message }];
    let said: Vec<&str> = said.into_iter().filter(|part| !part.is_empty()).collect();
    let said = if said.is_empty() { "no reason given".to_owned() } else { said.join(": ") };
    if exception.phase() == Phase::Failed && !exception.retryable {
        return format!("{said} (not tried again before it changes)");
    }
    said
}

/// The first failure, and how many more there are.
fn failures(exceptions: &[v1::Exception]) -> String {
    let failed: Vec<_> = exceptions.iter().filter(|exception| exception.phase() == Phase::Failed).collect();
    let Some(first) = failed.first() else { return String::new() };
    let name = first.key.as_ref().map(key_name).unwrap_or_default();
    let more = if failed.len() > 1 { format!(" (and {} more)", failed.len() - 1) } else { String::new() };
    format!("{name}: {}{more}", reason(first))
}
