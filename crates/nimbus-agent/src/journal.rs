//! What happened, for operators: counted by reason, bounded.

use nimbus_core::ObjectKey;
use nimbus_wire::v1;
use tokio::time::Instant;

use crate::report::shortened;

/// What happened. The same reason for the same object again is counted, and the oldest goes when there are too many.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    reason: &'static str,
    object: Option<ObjectKey>,
    message: String,
    count: u64,
    first: Instant,
    last: Instant,
    /// Not reported since it last happened.
    fresh: bool,
}

/// As many as the bus keeps for an agent.
const MAX_ENTRIES: usize = 16;

// === impl Journal ===

impl Journal {
    /// Takes note of something.
    pub(crate) fn note(&mut self, reason: &'static str, object: Option<&ObjectKey>, message: &str, now: Instant) {
        let message = shortened(message);
        let same = |entry: &&mut Entry| entry.reason == reason && entry.object.as_ref() == object;
        if let Some(entry) = self.entries.iter_mut().find(same) {
            entry.count += 1;
            (entry.message, entry.last, entry.fresh) = (message, now, true);
            return;
        }
        if self.entries.len() >= MAX_ENTRIES {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.last).map(|(at, _)| at);
            self.entries.remove(oldest.unwrap_or(0));
        }
        let object = object.cloned();
        self.entries
            .push(Entry { reason, object, message, count: 1, first: now, last: now, fresh: true });
    }

    /// Whether something is to be reported.
    pub(crate) fn is_fresh(&self) -> bool {
        self.entries.iter().any(|entry| entry.fresh)
    }

    /// What is to be reported: everything, or what is new.
    pub(crate) fn report(&mut self, full: bool, now: Instant) -> Vec<v1::AgentEvent> {
        let wanted = self.entries.iter_mut().filter(|entry| full || entry.fresh);
        let event = |entry: &mut Entry| {
            entry.fresh = false;
            v1::AgentEvent {
                reason: entry.reason.to_owned(),
                message: entry.message.clone(),
                count: entry.count,
                first_ms: millis(now - entry.first),
                last_ms: millis(now - entry.last),
                object: entry.object.as_ref().map(ObjectKey::to_wire),
            }
        };
        wanted.map(event).collect()
    }
}

pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
