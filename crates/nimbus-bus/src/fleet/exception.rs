//! What an agent says about an object that is not simply applied.

use nimbus_core::{Generation, ObjectKey};
use nimbus_wire::v1::{self, Phase};
use tokio::time::{Duration, Instant};
use tonic::Status;

use crate::fault;

/// What an agent says about an object that is not simply applied. Ages are kept as times, so that they go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) generation: Generation,
    pub(crate) phase: Phase,
    pub(crate) code: Box<str>,
    pub(crate) message: Box<str>,
    pub(crate) retryable: bool,
    pub(crate) attempts: u32,
    since: Instant,
    retry_at: Option<Instant>,
    pub(crate) waits_for: Box<[ObjectKey]>,
}

/// Codes are words, such as `EPERM`.
const MAX_CODE: usize = 64;

/// Enough for what a command printed last; kept for as long as the exception lasts.
const MAX_MESSAGE: usize = 1024;

/// Whoever waits for more than this is helped by the first of them.
const MAX_WAITS_FOR: usize = 16;

/// Counts, lengths and pointers of a key, and its place in a map.
const KEY_FRAME: usize = 96;

// === impl Exception ===

impl Exception {
    /// Checks and takes an exception; `path` names it in the request.
    pub(crate) fn parse(wire: v1::Exception, path: &str, now: Instant) -> Result<(ObjectKey, Self), Status> {
        let key = required_key(wire.key.as_ref(), &format!("{path}.key"))?;
        if wire.waits_for.len() > MAX_WAITS_FOR {
            let found = wire.waits_for.len();
            return Err(fault::bad(
                &format!("{path}.waits_for"),
                format!("at most {MAX_WAITS_FOR} keys, found {found}"),
            ));
        }
        let waits_for = wire.waits_for.iter().enumerate().map(|(at, key)| {
            ObjectKey::try_from(key).map_err(|error| fault::field(&format!("{path}.waits_for[{at}]"), &error))
        });
        let exception = Self {
            generation: Generation(wire.generation),
            // Something is the matter, but it is neither a failure nor done.
            phase: if wire.phase() == Phase::Unspecified { Phase::Pending } else { wire.phase() },
            waits_for: waits_for.collect::<Result<_, _>>()?,
            code: shortened(wire.code, MAX_CODE).into(),
            message: shortened(wire.message, MAX_MESSAGE).into(),
            retryable: wire.retryable,
            attempts: wire.attempts,
            since: before(now, wire.age_ms),
            retry_at: (wire.retry_in_ms != 0).then(|| after(now, wire.retry_in_ms)),
        };
        Ok((key, exception))
    }

    /// The exception as it travels; ages are those of now.
    pub(crate) fn to_wire(&self, key: &ObjectKey, now: Instant) -> v1::Exception {
        v1::Exception {
            key: Some(key.to_wire()),
            generation: self.generation.0,
            phase: self.phase.into(),
            code: self.code.to_string(),
            message: self.message.to_string(),
            retryable: self.retryable,
            attempts: self.attempts,
            age_ms: millis(now.saturating_duration_since(self.since)),
            // Overdue is at once, not never.
            retry_in_ms: self.retry_at.map_or(0, |at| millis(at.saturating_duration_since(now)).max(1)),
            waits_for: self.waits_for.iter().map(ObjectKey::to_wire).collect(),
        }
    }

    /// What it takes in memory together with the key that it is kept under, nearly.
    pub(crate) fn bytes(&self, key: &ObjectKey) -> usize {
        let waits_for: usize = self.waits_for.iter().map(key_bytes).sum();
        size_of::<Self>() + key_bytes(key) + self.code.len() + self.message.len() + waits_for
    }

    /// Whether it failed, and will not be tried again before the object changes.
    pub(crate) fn is_final(&self) -> bool {
        self.phase == Phase::Failed && !self.retryable
    }
}

/// A key that a request must have.
pub(crate) fn required_key(key: Option<&v1::Key>, path: &str) -> Result<ObjectKey, Status> {
    let key = key.ok_or_else(|| fault::bad(path, "the key of the object"))?;
    ObjectKey::try_from(key).map_err(|error| fault::field(path, &error))
}

/// What a key that came with a report takes in memory, nearly: its strings, and what holds them.
pub(crate) fn key_bytes(key: &ObjectKey) -> usize {
    KEY_FRAME + key.kind().as_str().len() + key.namespace().len() + key.name().len()
}

/// The beginning of a text.
pub(crate) fn shortened(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
    text
}

/// A time so many milliseconds ago; the clock may not reach back that far.
pub(crate) fn before(now: Instant, ms: u64) -> Instant {
    now.checked_sub(Duration::from_millis(ms)).unwrap_or(now)
}

fn after(now: Instant, ms: u64) -> Instant {
    now.checked_add(Duration::from_millis(ms)).unwrap_or(now)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
