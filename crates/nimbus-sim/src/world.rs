//! What all hosts of a simulation share: the model, what everybody saw, and what was wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use nimbus_agent::Handle;
use nimbus_store::State;
use parking_lot::{Mutex, MutexGuard};
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    machine::Machine,
    model::{Key, Model, Viewer},
    policies::Policies,
    setup::Setup,
};

/// What all hosts share. Clones are the same one.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<Inner>>);

/// How far a simulation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// Everybody writes, and everything fails.
    #[default]
    Chaos,
    /// Nothing fails any more, and writers put in order what could never be applied.
    Settling,
    /// Nothing fails, and everything is written once more: each call of a reactor is known beforehand.
    Steady,
    /// Everything is restarted, and nothing may change.
    Quiet,
}

/// Something that somebody did or saw.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) who: String,
    pub(crate) what: String,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) setup: Setup,
    /// For those who are no host.
    pub(crate) now: Duration,
    /// When the network that there is began.
    pub(crate) begun: Duration,
    pub(crate) model: Model,
    pub(crate) policies: Policies,
    pub(crate) phase: Phase,
    pub(crate) events: Vec<Event>,
    pub(crate) count: u64,
    hash: DefaultHasher,
    pub(crate) violation: Option<String>,
    /// How often each host was started.
    starts: BTreeMap<String, u64>,
    /// The last fence of each publisher.
    pub(crate) fences: BTreeMap<String, u64>,
    /// Publishers that have nothing more to say.
    pub(crate) done: BTreeSet<String>,
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) handles: BTreeMap<String, Handle>,
    /// What readers hold, and where; none while that is of no revision.
    pub(crate) readers: BTreeMap<String, Reading>,
    /// Readers that do not read for a while.
    pub(crate) stalled: BTreeSet<String>,
    /// Writes that were made with a lease: epoch, revision, token.
    pub(crate) claims: Vec<(u64, u64, u64)>,
    /// What the bus that users write to holds, as it was a moment ago.
    pub(crate) api: Option<Arc<State>>,
    /// Which controller may act, as that bus has it.
    pub(crate) leader: Option<String>,
    /// When each controller last had nothing left to do, and whether it led then.
    pub(crate) rested: BTreeMap<&'static str, (Duration, bool)>,
    /// Buses that are asked to stop, as an operator would.
    pub(crate) stopping: bool,
    /// By how much the clocks of hosts have jumped, in all.
    pub(crate) jumps: BTreeMap<String, Duration>,
    pub(crate) writes: u64,
}

/// What a reader holds.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) viewer: Viewer,
    pub(crate) held: BTreeMap<Key, u64>,
    pub(crate) exact: bool,
}

/// The last events that are kept for whoever has to find out what went wrong.
const KEPT: usize = 50_000;

// === impl Event ===

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:10.3} {:10} {}", self.at.as_secs_f64(), self.who, self.what)
    }
}

// === impl World ===

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        Self(Arc::new(Mutex::new(Inner { setup, ..Inner::default() })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// Takes note of what somebody did or saw.
    pub(crate) fn note(&self, who: &str, what: impl Into<String>) {
        self.lock().note(who, what.into());
    }

    /// Something happened that must not. The first one counts: others may follow from it.
    pub(crate) fn violate(&self, who: &str, property: &str, what: &str) {
        self.lock().violate(who, property, what);
    }

    /// Randomness for a host, another one each time that it is started.
    pub(crate) fn rng(&self, host: &str) -> SmallRng {
        let mut world = self.lock();
        let starts = world.starts.entry(host.to_owned()).or_default();
        *starts += 1;
        let mut hasher = DefaultHasher::new();
        (host, *starts, world.setup.seed).hash(&mut hasher);
        SmallRng::seed_from_u64(hasher.finish())
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.lock().violation.is_some()
    }
}

// === impl Inner ===

impl Inner {
    pub(crate) fn note(&mut self, who: &str, what: String) {
        let at = self.elapsed();
        (at, who, &what).hash(&mut self.hash);
        self.count += 1;
        if self.events.len() == KEPT {
            self.events.drain(..KEPT / 2);
        }
        self.events.push(Event { at, who: who.to_owned(), what });
    }

    pub(crate) fn violate(&mut self, who: &str, property: &str, what: &str) {
        self.note(who, format!("VIOLATION {property}: {what}"));
        self.violation.get_or_insert_with(|| format!("{property}: {who}: {what}"));
    }

    /// How long everything has taken so far.
    pub(crate) fn elapsed(&self) -> Duration {
        turmoil::sim_elapsed().map_or(self.now, |elapsed| self.begun + elapsed)
    }

    /// Forgets what nobody can ask for any more, now that everybody has everything.
    pub(crate) fn forget(&mut self) {
        self.model.forget();
        self.policies.forget();
        self.claims.clear();
        self.machines.values_mut().for_each(Machine::forget);
    }

    /// What is kept for judging, without the last events: so many things as nobody may be asked for any more.
    pub(crate) fn kept(&self) -> usize {
        let machines: usize = self.machines.values().map(Machine::kept).sum();
        self.model.kept() + self.policies.kept() + self.claims.len() + self.starts.len() + machines
    }

    /// Lets a number that is no event count for the fingerprint.
    pub(crate) fn count_in(&mut self, number: u64) {
        number.hash(&mut self.hash);
    }

    /// Stands for everything that happened.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.hash.finish()
    }
}

/// A time between two, in milliseconds.
pub(crate) fn millis(rng: &mut SmallRng, from: u64, to: u64) -> Duration {
    Duration::from_millis(rng.random_range(from..=to))
}
