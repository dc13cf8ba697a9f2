//! How reflectors are configured.

use std::time::Duration;

use nimbus_core::Backoff;

/// How reflectors are configured.
#[derive(Debug, Clone)]
pub struct ReflectorConfig {
    /// How long a watch goes on when nobody uses it any more. References come and go with every edit, and a list costs
    /// more than half a minute of silence.
    pub linger: Duration,
    /// How long to wait before a watch that broke off is taken up again.
    pub backoff: Backoff,
    /// Where the jitter of the backoff begins.
    pub seed: u64,
}

// === impl ReflectorConfig ===

impl Default for ReflectorConfig {
    fn default() -> Self {
        Self { linger: Duration::from_secs(30), backoff: Backoff::default(), seed: rand::random() }
    }
}
