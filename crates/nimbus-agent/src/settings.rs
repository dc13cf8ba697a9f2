//! How an agent is set up.

use std::{path::PathBuf, sync::Arc, time::Duration};

use nimbus_client::{Connector, Endpoint};
use nimbus_core::{AgentId, Backoff, Labels};
use nimbus_wire::v1;

/// How an agent is set up, checked.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) id: AgentId,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) labels: Labels,
    pub(crate) kinds: Vec<String>,
    pub(crate) filter: Option<v1::Filter>,
    pub(crate) software: String,
    pub(crate) cache: Option<PathBuf>,
    /// What was applied before a restart still is.
    pub(crate) trust: bool,
    pub(crate) detached_after: Duration,
    pub(crate) concurrency: usize,
    pub(crate) reconnect: Backoff,
    pub(crate) retry: Backoff,
    pub(crate) quarantine: Backoff,
    pub(crate) deadline: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) seed: u64,
    /// The disk is written to on the thread of the runtime.
    pub(crate) inline_disk: bool,
}

/// Optional parts of the protocol that this agent understands.
const CAPABILITIES: [&str; 1] = ["rescope"];

// === impl Settings ===

impl Settings {
    /// What to subscribe to, with what is held already.
    pub(crate) fn subscribe(&self, labels: &Labels, resume: Option<v1::Resume>) -> v1::SubscribeRequest {
        v1::SubscribeRequest {
            kinds: self.kinds.clone(),
            filter: self.filter.clone(),
            agent: self.id.to_string(),
            agent_labels: labels.to_wire(),
            resume,
            credit_bytes: 0,
            software: self.software.clone(),
            capabilities: CAPABILITIES.map(str::to_owned).into(),
        }
    }

    /// The same subscription with other labels.
    pub(crate) fn rescope(&self, labels: &Labels) -> v1::Rescope {
        v1::Rescope { kinds: self.kinds.clone(), filter: self.filter.clone(), agent_labels: labels.to_wire() }
    }
}
