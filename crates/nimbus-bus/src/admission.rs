//! Admission of snapshots: so many bytes per second in all, and who must wait is told exactly how long.

use std::collections::HashMap;

use nimbus_core::AgentId;
use tokio::time::{Duration, Instant};

/// Spreads snapshots over time. A plain struct: time is passed in.
#[derive(Debug)]
pub(crate) struct Admission {
    rate: u64,
    /// How far ahead of its rate it may be.
    burst: Duration,
    /// When everything that was admitted so far has been sent, at the rate.
    busy_until: Option<Instant>,
    /// Turns that were promised, and until when they hold.
    turns: HashMap<AgentId, Turn>,
    max_turns: usize,
}

#[derive(Debug, Clone, Copy)]
struct Turn {
    at: Instant,
    until: Instant,
}

/// Who was told to come back is expected within this time after its turn.
const GRACE: Duration = Duration::from_secs(30);

// === impl Admission ===

impl Admission {
    pub(crate) fn new(rate: u64, burst: u64, max_turns: usize) -> Self {
        let rate = rate.max(1);
        Self { rate, burst: time_for(burst, rate), busy_until: None, turns: HashMap::new(), max_turns }
    }

    /// Asks for a snapshot of so many bytes: now, or after this long. An agent that has to wait keeps its turn.
    pub(crate) fn ask(&mut self, agent: Option<&AgentId>, bytes: u64, now: Instant) -> Result<(), Duration> {
        if let Some(turn) = agent.and_then(|agent| self.turns.get(agent).copied()) {
            let agent = agent.expect("it has a turn");
            if now >= turn.at {
                self.turns.remove(agent);
                if now <= turn.until {
                    return Ok(());
                }
            } else {
                return Err(turn.at - now);
            }
        }
        let busy_until = self.busy_until.unwrap_or(now).max(now);
        let ahead = busy_until - now;
        if ahead <= self.burst {
            self.busy_until = Some(busy_until + time_for(bytes, self.rate));
            return Ok(());
        }
        let wait = ahead - self.burst;
        if let Some(agent) = agent {
            self.forget_missed(now);
            if self.turns.len() < self.max_turns {
                self.busy_until = Some(busy_until + time_for(bytes, self.rate));
                let at = now + wait;
                self.turns.insert(agent.clone(), Turn { at, until: at + GRACE });
            }
        }
        Err(wait)
    }

    /// How long a snapshot that is asked for now would have to wait.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        let ahead = self.busy_until.unwrap_or(now).saturating_duration_since(now);
        ahead.saturating_sub(self.burst)
    }

    /// How many turns are promised.
    pub(crate) fn turns(&self) -> usize {
        self.turns.len()
    }

    fn forget_missed(&mut self, now: Instant) {
        if self.turns.len() >= self.max_turns {
            self.turns.retain(|_, turn| turn.until >= now);
        }
    }
}

fn time_for(bytes: u64, rate: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / rate as f64)
}

#[cfg(test)]
mod tests;
