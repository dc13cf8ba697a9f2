//! What happened at an agent, for operators.

use std::collections::VecDeque;

use nimbus_core::ObjectKey;
use nimbus_wire::v1;
use tokio::time::Instant;
use tonic::Status;

use crate::{
    fault,
    fleet::exception::{before, millis, shortened},
};

/// Something that happened; the same again is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    reason: Box<str>,
    message: Box<str>,
    count: u64,
    first: Instant,
    last: Instant,
    object: Option<ObjectKey>,
}

/// The latest events of one agent, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Events(VecDeque<Event>);

/// Operators look at what happened last; for a history there are logs.
const KEPT: usize = 16;

/// Reasons are words.
const MAX_REASON: usize = 64;

/// One line.
const MAX_MESSAGE: usize = 1024;

// === impl Event ===

impl Event {
    /// Checks and takes an event; `path` names it in the request.
    pub(crate) fn parse(wire: v1::AgentEvent, path: &str, now: Instant) -> Result<Self, Status> {
        if wire.reason.is_empty() {
            return Err(fault::bad(&format!("{path}.reason"), "a word, such as Drift"));
        }
        let object = wire.object.as_ref().map(ObjectKey::try_from).transpose();
        Ok(Self {
            object: object.map_err(|error| fault::field(&format!("{path}.object"), &error))?,
            reason: shortened(wire.reason, MAX_REASON).into(),
            message: shortened(wire.message, MAX_MESSAGE).into(),
            count: wire.count.max(1),
            first: before(now, wire.first_ms),
            last: before(now, wire.last_ms),
        })
    }

    fn to_wire(&self, now: Instant) -> v1::AgentEvent {
        v1::AgentEvent {
            reason: self.reason.to_string(),
            message: self.message.to_string(),
            count: self.count,
            first_ms: millis(now.saturating_duration_since(self.first)),
            last_ms: millis(now.saturating_duration_since(self.last)),
            object: self.object.as_ref().map(ObjectKey::to_wire),
        }
    }
}

// === impl Events ===

impl Events {
    /// Adds an event. The same reason for the same object replaces what was known of it; beyond the bound, the oldest
    /// one is forgotten.
    pub(crate) fn add(&mut self, event: Event) {
        self.0.retain(|other| (&other.reason, &other.object) != (&event.reason, &event.object));
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    /// The events as they travel.
    pub(crate) fn to_wire(&self, now: Instant) -> Vec<v1::AgentEvent> {
        self.0.iter().map(|event| event.to_wire(now)).collect()
    }
}
