//! Whom an object is for.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_wire::v1::{self, audience::To};

use crate::{AgentId, Invalid, Labels, Selector};

/// Whom an object is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Audience {
    /// Every agent.
    #[default]
    Everyone,
    /// Agents whose labels match.
    Selector(Selector),
    /// These agents, whether they are known yet or not. An empty set is nobody.
    Agents(Arc<BTreeSet<AgentId>>),
}

// === impl Audience ===

impl Audience {
    /// Reads an audience; unset is everyone.
    ///
    /// # Errors
    /// If the selector does not parse or an agent id is not one.
    pub fn from_wire(audience: Option<&v1::Audience>) -> Result<Self, Invalid> {
        match audience.map(|audience| &audience.to) {
            None => Ok(Self::Everyone),
            Some(None) => Ok(Self::Agents(Arc::default())),
            Some(Some(To::Selector(text))) => Ok(Self::Selector(Selector::parse(text)?)),
            Some(Some(To::Agents(agents))) => {
                let ids = agents.ids.iter().map(|id| AgentId::new(id)).collect::<Result<_, _>>()?;
                Ok(Self::Agents(Arc::new(ids)))
            }
        }
    }

    /// The audience as it travels.
    pub fn to_wire(&self) -> Option<v1::Audience> {
        let to = match self {
            Self::Everyone => return None,
            Self::Selector(selector) => To::Selector(selector.to_string()),
            Self::Agents(ids) => To::Agents(v1::Agents { ids: ids.iter().map(ToString::to_string).collect() }),
        };
        Some(v1::Audience { to: Some(to) })
    }

    /// Whether an agent with these labels is meant.
    pub fn includes(&self, agent: &AgentId, labels: &Labels) -> bool {
        match self {
            Self::Everyone => true,
            Self::Selector(selector) => selector.matches(labels),
            Self::Agents(ids) => ids.contains(agent),
        }
    }
}
