//! Who wants to know of which lanes, so that a write wakes those who will read it and nobody else.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    task::Waker,
};

use dashmap::DashMap;
use nimbus_core::{AgentId, Kind, Labels, Selector, Term};

use crate::{
    filter::Filter,
    lane::Address,
    scope::{Scope, Viewer},
    sync::{AtomicBool, AtomicU64, Mutex, Ordering},
    writer::Touched,
};

/// Wakes one reader. Cheap to clone; many wakes before the reader looks are one.
#[derive(Debug, Clone, Default)]
pub struct Signal(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    raised: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// All readers that wait.
#[derive(Debug)]
pub(crate) struct Interest {
    crowds: DashMap<Spot, Crowd>,
    ids: AtomicU64,
}

/// A kind (or all kinds) through a filter, for one sort of address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Spot {
    kind: Option<Kind>,
    filter: Option<Arc<Filter>>,
    who: Who,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    Observers,
    Everyone,
    Agent(AgentId),
    /// Agents by their labels, for selectors.
    Labelled,
}

/// Readers of one spot, by their labels.
#[derive(Debug, Default)]
struct Crowd {
    readers: HashMap<Labels, HashMap<u64, Signal>>,
    /// Which label sets have a pair; only where selectors will ask.
    by_term: HashMap<Term, HashSet<Labels>>,
}

/// A reader's place in the crowds; it leaves them when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    interest: Arc<Interest>,
    id: u64,
    labels: Labels,
    spots: Vec<Spot>,
}

/// Enough for writers and readers on many processors not to wait for each other. The number does not follow from how many
/// there are: in the order of these all readers are woken, and a simulation has to wake them in the same one everywhere.
const SHARDS: usize = 64;

// === impl Signal ===

impl Signal {
    /// Wakes the reader, unless it has been woken and has not looked yet.
    pub fn raise(&self) {
        if !self.0.raised.swap(true, Ordering::AcqRel)
            && let Some(waker) = self.0.waker.lock().take()
        {
            waker.wake();
        }
    }

    /// Says whether the signal was raised since the last time. Whatever it says, `waker` is woken by the next raise: a
    /// reader that looks and finds nothing need not ask again.
    pub fn poll(&self, waker: &Waker) -> bool {
        let mut slot = self.0.waker.lock();
        if !slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *slot = Some(waker.clone());
        }
        drop(slot);
        self.0.raised.swap(false, Ordering::AcqRel)
    }
}

// === impl Interest ===

impl Default for Interest {
    fn default() -> Self {
        Self { crowds: DashMap::with_shard_amount(SHARDS), ids: AtomicU64::default() }
    }
}

impl Interest {
    /// Adds a reader to every crowd that its scope belongs to.
    pub(crate) fn join(self: &Arc<Self>, scope: &Scope, signal: &Signal) -> Place {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (whos, labels) = match &scope.viewer {
            Viewer::Observer => (vec![Who::Observers], Labels::default()),
            Viewer::Agent { id, labels } => {
                (vec![Who::Everyone, Who::Agent(id.clone()), Who::Labelled], labels.clone())
            }
        };
        let kinds = match &scope.kinds {
            None => vec![None],
            Some(kinds) => kinds.iter().cloned().map(Some).collect(),
        };
        let spots: Vec<Spot> = kinds
            .iter()
            .flat_map(|kind| {
                let spot = |who: &Who| Spot { kind: kind.clone(), filter: scope.filter.clone(), who: who.clone() };
                whos.iter().map(spot).collect::<Vec<_>>()
            })
            .collect();
        for spot in &spots {
            self.crowds.entry(spot.clone()).or_default().insert(id, spot, &labels, signal);
        }
        Place { interest: self.clone(), id, labels, spots }
    }

    /// Wakes the readers of these lanes.
    pub(crate) fn wake(&self, touched: Vec<Touched>) {
        let mut awake = Vec::new();
        for Touched { kind, filter, address } in touched {
            let (who, selector) = match address {
                Address::Observers => (Who::Observers, None),
                Address::Everyone => (Who::Everyone, None),
                Address::Agent(agent) => (Who::Agent(agent), None),
                Address::Selector(selector) => (Who::Labelled, Some(selector)),
            };
            let mut spot = Spot { kind: Some(kind), filter, who };
            self.collect(&spot, selector.as_ref(), &mut awake);
            spot.kind = None;
            self.collect(&spot, selector.as_ref(), &mut awake);
        }
        awake.iter().for_each(Signal::raise);
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        let mut awake = Vec::new();
        for crowd in &self.crowds {
            awake.extend(crowd.readers.values().flat_map(HashMap::values).cloned());
        }
        awake.iter().for_each(Signal::raise);
    }

    fn collect(&self, spot: &Spot, selector: Option<&Selector>, into: &mut Vec<Signal>) {
        let Some(crowd) = self.crowds.get(spot) else { return };
        match selector {
            None => into.extend(crowd.readers.values().flat_map(HashMap::values).cloned()),
            Some(selector) => crowd.matching(selector, into),
        }
    }
}

// === impl Crowd ===

impl Crowd {
    fn insert(&mut self, id: u64, spot: &Spot, labels: &Labels, signal: &Signal) {
        if spot.who == Who::Labelled && !self.readers.contains_key(labels) {
            for (key, value) in labels.iter() {
                self.by_term.entry((key.into(), value.into())).or_default().insert(labels.clone());
            }
        }
        self.readers.entry(labels.clone()).or_default().insert(id, signal.clone());
    }

    fn remove(&mut self, id: u64, labels: &Labels) {
        let Some(readers) = self.readers.get_mut(labels) else { return };
        readers.remove(&id);
        if !readers.is_empty() {
            return;
        }
        self.readers.remove(labels);
        for (key, value) in labels.iter() {
            let term = (key.into(), value.into());
            if let Some(sets) = self.by_term.get_mut(&term) {
                sets.remove(labels);
                if sets.is_empty() {
                    self.by_term.remove(&term);
                }
            }
        }
    }

    fn matching(&self, selector: &Selector, into: &mut Vec<Signal>) {
        let mut add = |labels: &Labels| {
            if selector.matches(labels) {
                into.extend(self.readers.get(labels).into_iter().flat_map(HashMap::values).cloned());
            }
        };
        // The rarest of the pairs that it demands: `arch=amd64,host=x` is one host, not the fleet.
        let readers =
            |terms: &Vec<Term>| terms.iter().filter_map(|term| self.by_term.get(term)).map(HashSet::len).sum::<usize>();
        match selector.pivots().min_by_key(readers) {
            Some(terms) => {
                let sets: HashSet<_> = terms.iter().filter_map(|term| self.by_term.get(term)).flatten().collect();
                sets.into_iter().for_each(add);
            }
            None => self.readers.keys().for_each(&mut add),
        }
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        for spot in &self.spots {
            if let Some(mut crowd) = self.interest.crowds.get_mut(spot) {
                crowd.remove(self.id, &self.labels);
            }
            self.interest.crowds.remove_if(spot, |_, crowd| crowd.readers.is_empty());
        }
    }
}
