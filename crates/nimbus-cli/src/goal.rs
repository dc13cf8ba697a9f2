//! When a wait is over: how many agents are enough, and whether they can still be had.

#[cfg(test)]
mod tests;

use std::str::FromStr;

use clap::ValueEnum;
use nimbus_wire::v1::Propagation;

/// What agents are waited for to have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deed {
    /// They have applied it, or removed what was deleted.
    Applied,
    /// It has reached them.
    Received,
}

/// How many agents are enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Enough {
    /// This many.
    Agents(u32),
    /// Of those that it is for, this many in a hundred.
    Percent(f64),
}

/// When a wait is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Goal {
    pub(crate) deed: Deed,
    pub(crate) enough: Enough,
}

/// How it stands with a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    Reached,
    Open,
    /// Too many have failed, and will not try again before the object changes.
    Hopeless,
}

// === impl Goal ===

impl Goal {
    /// How it stands. It takes at least one agent: nobody has done nothing.
    pub(crate) fn outlook(self, propagation: &Propagation) -> Outlook {
        let Propagation { agents, failed_for_good, .. } = *propagation;
        let needed = self.needed(agents);
        if agents > 0 && self.done(propagation) >= needed {
            return Outlook::Reached;
        }
        let left = agents.saturating_sub(failed_for_good);
        // Agents that have not come yet may come.
        if self.deed == Deed::Applied && agents >= needed && left < needed {
            return Outlook::Hopeless;
        }
        Outlook::Open
    }

    /// How many have done it.
    pub(crate) fn done(self, propagation: &Propagation) -> u32 {
        match self.deed {
            Deed::Applied => propagation.applied,
            Deed::Received => propagation.received,
        }
    }

    /// How many must, of that many.
    pub(crate) fn needed(self, agents: u32) -> u32 {
        match self.enough {
            Enough::Agents(count) => count,
            Enough::Percent(percent) => {
                // Of 30 agents, 70 % are 21; in binary fractions it would be a little more.
                let exact = f64::from(agents) * percent / 100.0;
                let whole = exact.round();
                let least = if (exact - whole).abs() < 1e-6 { whole } else { exact.ceil() };
                (least as u32).max(1)
            }
        }
    }
}

// === impl Deed ===

impl Deed {
    /// What was done, after `have`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Received => "received",
        }
    }
}

// === impl Enough ===

impl FromStr for Enough {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a number of agents such as 3, or a part of them such as 90%";
        if let Some(percent) = text.strip_suffix('%') {
            return match percent.trim_end().parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self::Percent(percent)),
                _ => Err(EXPECTED.to_owned()),
            };
        }
        match text.parse() {
            Ok(count) if count > 0 => Ok(Self::Agents(count)),
            _ => Err(EXPECTED.to_owned()),
        }
    }
}
