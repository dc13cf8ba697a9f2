//! Whether the machine still is as an object was last applied.

use std::time::Duration;

use nimbus_core::Failure;
use tokio::time::Instant;

/// Whether the machine still is as an object was last applied, and when to look again.
///
/// Looking never overlaps with another call for the same object, and what was seen is thrown away if the object changed
/// meanwhile: nobody sees work that is half done.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// When to look or to heal; set in the timers as well.
    pub(crate) at: Option<Instant>,
    /// The time has come.
    pub(crate) due: bool,
    pub(crate) pace: Pace,
    /// How often it was found drifted since it was last found in sync.
    pub(crate) drifts: u32,
    /// How often looking failed since it last succeeded.
    pub(crate) errors: u32,
    /// What the last error said.
    pub(crate) error: Option<Failure>,
    /// Found, and not yet healed.
    pub(crate) drift: Option<Drift>,
}

/// A drift that is to be healed.
#[derive(Debug)]
pub(crate) struct Drift {
    pub(crate) message: String,
    /// How often healing was tried.
    pub(crate) attempts: u32,
    pub(crate) failure: Option<Failure>,
    /// How long to wait before it is tried.
    pub(crate) delay: Duration,
}

/// When to look next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pace {
    /// Nobody knows what happened while the agent was away.
    Soon,
    /// For the first time: somewhere within the interval, so that a crowd spreads.
    #[default]
    Spread,
    /// After the interval.
    Steady,
}

/// Once is an accident and twice may be. Three times in a row, somebody else is at work.
pub(crate) const TOO_OFTEN: u32 = 3;

/// Whoever fights for an object is answered at most this many intervals later.
const MAX_FACTOR: u32 = 32;

/// After a restart, everything is looked at within this time.
const SOON: Duration = Duration::from_secs(10);

// === impl Watch ===

impl Watch {
    /// How long to wait before the next look, or heal; `random` is between 0 and 1.
    pub(crate) fn delay(&self, interval: Duration, random: f64) -> Duration {
        if let Some(drift) = &self.drift {
            return drift.delay;
        }
        match self.pace {
            _ if self.errors > 0 => jittered(widened(interval, self.errors - 1), random),
            Pace::Soon => interval.min(SOON).mul_f64(random),
            Pace::Spread => interval.mul_f64(random),
            Pace::Steady => jittered(interval, random),
        }
    }

    /// The machine is as it should be.
    pub(crate) fn in_sync(&mut self) {
        (self.drifts, self.errors, self.error) = (0, 0, None);
    }

    /// The machine is otherwise. A drift that follows from an attempt of our own is nobody's fault.
    pub(crate) fn drifted(&mut self, message: String, own: bool, interval: Duration, random: f64) {
        (self.errors, self.error) = (0, None);
        if !own {
            self.drifts = self.drifts.saturating_add(1);
        }
        let delay = match self.drifts {
            0 | 1 => Duration::ZERO,
            drifts => jittered(widened(interval, drifts - 2), random),
        };
        self.drift = Some(Drift { message, attempts: 0, failure: None, delay });
    }

    /// Looking failed.
    pub(crate) fn failed(&mut self, failure: Failure) {
        self.errors = self.errors.saturating_add(1);
        self.error = Some(failure);
    }

    /// Healing failed.
    pub(crate) fn not_healed(&mut self, failure: Failure, interval: Duration, delay: Duration) {
        let Some(drift) = &mut self.drift else { return };
        drift.attempts = drift.attempts.saturating_add(1);
        drift.delay = if failure.is_permanent() { widened(interval, u32::MAX) } else { delay };
        drift.failure = Some(failure);
    }

    /// Whether it was applied, but cannot be kept as it should be.
    pub(crate) fn is_losing(&self) -> bool {
        self.drift.as_ref().is_some_and(|drift| drift.failure.is_some())
    }

    /// Whether it is worth telling.
    pub(crate) fn is_degraded(&self) -> bool {
        self.is_losing() || self.drifts >= TOO_OFTEN || self.errors >= TOO_OFTEN
    }
}

/// Doubled that many times, within reason.
fn widened(interval: Duration, times: u32) -> Duration {
    interval.saturating_mul(1_u32.checked_shl(times).unwrap_or(MAX_FACTOR).min(MAX_FACTOR))
}

/// A tenth more or less.
fn jittered(interval: Duration, random: f64) -> Duration {
    interval.mul_f64(0.9 + 0.2 * random)
}
