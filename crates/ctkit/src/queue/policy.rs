//! What is agreed for the keys of a lane, and for all of them together.

use std::time::Duration;

use nimbus_core::Backoff;

use crate::queue::rate::Rate;

/// What is agreed for the keys of one lane.
///
/// ```
/// # use std::time::Duration;
/// # use ctkit::queue::{Debounce, Policy};
/// let policy = Policy {
///     concurrency: 8,
///     debounce: Some(Debounce::trailing(Duration::from_millis(50))),
///     ..Policy::default()
/// };
/// assert_eq!(policy.poison_after, 5);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// So many keys of this lane run at once; 0 is read as 1.
    pub concurrency: usize,
    /// Whether changes that follow each other closely make one run.
    pub debounce: Option<Debounce>,
    /// The wait after a failure.
    pub backoff: Backoff,
    /// The wait after a panic.
    pub quarantine: Backoff,
    /// After so many panics in a row only an edit, or a person, makes the key run again; 0 is read as 1.
    pub poison_after: u32,
    /// How often a key of this lane may begin to run.
    pub rate: Option<Rate>,
}

/// Makes one run of changes that follow each other closely. Only what comes in bursts is debounced: edits, touches,
/// referents and status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Debounce {
    /// A burst is over when nothing has come for so long.
    pub quiet: Duration,
    /// A run is due so long after the first change that it has not seen, even if the burst never ends.
    pub max_wait: Duration,
    /// The first change after a pause runs at once, and only those that follow it wait.
    pub leading: bool,
}

/// What is agreed for all lanes together.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// So many keys run at once; 0 is read as 1.
    pub concurrency: usize,
    /// How often a key may begin to run.
    pub rate: Option<Rate>,
    /// Of so many runs of a lane, one at least is for the boot list or a resync, if any such key is waiting. 0 is read
    /// as 1, which puts them before everything else.
    pub boot_share: u32,
}

/// Reactors mostly wait for others, and a handful of them at once is polite to whoever they wait for.
const LANE_CONCURRENCY: usize = 8;

/// Enough for a dozen busy lanes, and few enough to be held in memory together.
const CONCURRENCY: usize = 64;

/// A panic is a bug. Trying again soon helps only if it came from a race, and costs a stack trace each time.
const QUARANTINE: Backoff = Backoff { base: Duration::from_secs(10), max: Duration::from_secs(15 * 60) };

/// Races do not hit so often in a row; a bug that depends on the object does.
const POISON_AFTER: u32 = 5;

/// An edit then waits for one boot key at most, and a boot list of 100,000 keys goes on even under a storm of edits.
const BOOT_SHARE: u32 = 8;

/// A burst that lasts for so many quiet times is not one that somebody is waiting to end.
const QUIET_TIMES: u32 = 10;

// === impl Policy ===

impl Default for Policy {
    /// Eight at once, no debounce and no rate.
    fn default() -> Self {
        Self {
            concurrency: LANE_CONCURRENCY,
            debounce: None,
            backoff: Backoff::default(),
            quarantine: QUARANTINE,
            poison_after: POISON_AFTER,
            rate: None,
        }
    }
}

// === impl Debounce ===

impl Debounce {
    /// A run when nothing has come for `quiet`, or after ten times as long.
    pub fn trailing(quiet: Duration) -> Self {
        Self { quiet, max_wait: quiet.saturating_mul(QUIET_TIMES), leading: false }
    }

    /// A run at once, and then as with [trailing](Debounce::trailing).
    pub fn leading(quiet: Duration) -> Self {
        Self { leading: true, ..Self::trailing(quiet) }
    }
}

// === impl Config ===

impl Default for Config {
    /// 64 at once, no rate, and every eighth run for the boot list.
    fn default() -> Self {
        Self { concurrency: CONCURRENCY, rate: None, boot_share: BOOT_SHARE }
    }
}
