//! Keys that should be looked at, each by one at a time.

mod add;
mod apart;
mod case;
mod cause;
mod counts;
mod entry;
mod finish;
mod group;
mod job;
mod lane;
mod links;
mod next;
mod pause;
mod policy;
mod rate;
mod settle;
mod slots;
mod state;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    time::Duration,
};

use tokio::time::Instant;

pub use self::{
    cause::{Cause, Causes},
    counts::Counts,
    finish::{Finish, NotRunning},
    group::Group,
    job::Job,
    lane::Lane,
    policy::{Config, Debounce, Policy},
    rate::Rate,
    state::{State, View},
};
use self::{
    entry::Entry,
    group::Groups,
    lane::Line,
    links::Links,
    rate::Bucket,
    slots::{Slot, Slots},
};

/// Keys that should be looked at, each by one at a time.
///
/// The queue has no clock, no tasks and no values. Whoever drives it says what time it is, asks for the
/// [next](Queue::next) job while there is one, reads the newest value of its key, and says how it
/// [ended](Queue::finish):
///
/// ```
/// # use std::time::Duration;
/// # use tokio::time::Instant;
/// use ctkit::queue::{Cause, Config, Finish, Policy, Queue};
/// use nimbus_core::Failure;
///
/// let mut queue = Queue::new(Config::default());
/// let policies = queue.lane(Policy::default());
/// let now = Instant::now();
///
/// queue.add(policies, "default/web", Cause::Edited, now);
/// queue.add(policies, "default/web", Cause::Status, now);
/// let job = queue.next(now).expect("one run for both");
/// assert!(job.causes.contains(Cause::Edited) && job.causes.contains(Cause::Status));
/// assert!(queue.next(now).is_none(), "it is running");
///
/// let failed = Finish::Retry(Failure::new("no route to host").retry_after(Duration::from_secs(1)));
/// queue.finish(policies, &job.key, failed, now, 0.5)?;
/// assert_eq!(queue.deadline(), Some(now + Duration::from_secs(1)));
///
/// let now = now + Duration::from_secs(1);
/// let job = queue.next(now).expect("it is tried again");
/// assert_eq!(job.attempt, 1);
/// queue.finish(policies, &job.key, Finish::Done, now, 0.5)?;
/// assert!(queue.is_empty());
/// # Ok::<(), ctkit::queue::NotRunning>(())
/// ```
///
/// # What it promises
/// - A key has one entry in its lane, and is never handed out twice at once. Whatever is added while it runs makes one
///   more run. The same key in two lanes is two entries that know nothing of each other.
/// - A key leaves only by a success, and a job says all causes since the last one. A key without anything to remember
///   costs nothing.
/// - Of all times that are asked for, the earliest counts. A run settles all of them.
/// - Constant changes delay a key by the maximum wait of its [debounce](Debounce) at most. What has become due stays due.
/// - No lane, no burst of edits and no boot list starves another: lanes take turns, and the boot list has its share.
///
/// # What wins over what
/// A key that ran and is not simply done is in one of these states, and something happens to it:
///
/// | cause | `Delayed` | `Waiting` | `Retrying` | `Failed` | `Quarantined` | `Poisoned` |
/// |---|---|---|---|---|---|---|
/// | `Edited` | sooner* | wakes* | **forgives*** | **forgives*** | **forgives*** | **forgives*** |
/// | `Manual` | now | wakes | once, now | once, now | once, now | once, now |
/// | `Referent` | sooner* | wakes* | sooner* | notes | notes | notes |
/// | `Touched`, `Status` | sooner* | wakes* | notes | notes | notes | notes |
/// | `Boot`, `Resync`, `Requeued`, `Retried` | now | wakes | notes | notes | notes | notes |
/// | [`add_after`](Queue::add_after) | earliest | earliest | notes | notes | notes | notes |
///
/// - *forgives*: it runs as if it had never failed; attempts, panics and the failure are forgotten.
/// - *once*: it runs; what it has failed so far still counts, so that a poisoned key that panics again is poisoned again.
///   After `Manual` and `Referent` the backoff starts from its beginning.
/// - *sooner*: it runs when the burst of changes is over, or at the time that was planned if that is earlier.
/// - *notes*: the cause is told to the next run, which is when it would have been.
/// - \*: after the [debounce](Policy::debounce) of the lane, if it has one; else now.
///
/// The same holds if something happens while the key is running and the run then fails: an edit means that what failed
/// was an older version. A [paused](Queue::pause) key, and one of a [closed](Queue::close_group) group, goes through the
/// same states, and stays.
///
/// Keys may be chosen by strangers, so they are hashed as the standard library does; keys that know their hash bring
/// [hashes of their own](Queue::with_hashes).
pub struct Queue<K, S = RandomState> {
    config: Config,
    bucket: Bucket,
    entries: Slots<Entry<K>>,
    /// By the number of the lane. Lanes are few: some things are done for each of them.
    lines: Vec<Line<K, S>>,
    /// The lane whose turn it is.
    turn: usize,
    /// Of the lists of ready entries.
    ready: Links,
    groups: Groups,
    /// Of the lists of the members of groups.
    members: Links,
    /// When to forget entries that have nothing to do.
    quiet: BTreeSet<(Instant, Slot)>,
    running: usize,
    draining: bool,
}

/// Nobody waits for longer, and clocks can count that far.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// So long after `at`.
fn later(at: Instant, delay: Duration) -> Instant {
    at + delay.min(LONGEST)
}

// === impl Queue ===

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Without lanes, and without keys.
    pub fn new(config: Config) -> Self {
        Self::with_hashes(config)
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher + Default> Queue<K, S> {
    /// The same for keys that are hashed in another way.
    pub fn with_hashes(config: Config) -> Self {
        Self {
            bucket: Bucket::new(config.rate),
            config,
            entries: Slots::new(),
            lines: Vec::new(),
            turn: 0,
            ready: Links::default(),
            groups: Groups::default(),
            members: Links::default(),
            quiet: BTreeSet::new(),
            running: 0,
            draining: false,
        }
    }

    /// One more lane.
    ///
    /// # Panics
    /// If there are 65,536 of them.
    pub fn lane(&mut self, policy: Policy) -> Lane {
        let lane = Lane(u16::try_from(self.lines.len()).expect("there are as many lanes as kinds of objects"));
        self.lines.push(Line::new(policy));
        lane
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher> Queue<K, S> {
    /// What is known about a key; `None` if there is nothing to do for it.
    pub fn get(&self, lane: Lane, key: &K) -> Option<View<'_, K>> {
        self.find(lane, key).map(|slot| self.entries[slot].view())
    }

    /// What is known about all keys, in no order.
    pub fn entries(&self) -> impl Iterator<Item = View<'_, K>> {
        self.entries.iter().map(Entry::view)
    }

    /// How many keys of this lane are how, as of the last call of [`Queue::next`].
    pub fn counts(&self, lane: Lane) -> Counts {
        self.lines.get(usize::from(lane.0)).map(|line| line.counts).unwrap_or_default()
    }

    /// How many keys are how.
    pub fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        self.lines.iter().for_each(|line| totals += line.counts);
        totals
    }

    /// How many keys have something to be remembered, those that are running included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, lane: Lane, key: &K) -> Option<Slot> {
        self.lines.get(usize::from(lane.0))?.keys.get(key).copied()
    }
}

impl<K, S> fmt::Debug for Queue<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("lanes", &self.lines.len())
            .field("len", &self.entries.len())
            .field("running", &self.running)
            .field("draining", &self.draining)
            .finish_non_exhaustive()
    }
}
