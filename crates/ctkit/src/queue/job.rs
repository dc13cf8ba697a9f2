//! One run of one key.

use std::time::Duration;

use crate::queue::{cause::Causes, group::Group, lane::Lane};

/// One run of one key. Until it is [finished](crate::queue::Queue::finish) or [abandoned](crate::queue::Queue::abandon), the key is not
/// handed out again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job<K> {
    /// Whose policy it goes by.
    pub lane: Lane,
    /// What to look at. The value is read now, so it is the newest.
    pub key: K,
    /// The group it was added in.
    pub group: Option<Group>,
    /// All causes since the last success, this run's own included.
    pub causes: Causes,
    /// How often it has failed since the last success or edit.
    pub attempt: u32,
    /// How long it has been due: without debounce, delay and backoff.
    pub waited: Duration,
}
