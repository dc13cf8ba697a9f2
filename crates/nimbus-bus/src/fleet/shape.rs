//! What many agents have in common: kinds, filter, labels. What follows from them is computed once for each.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Weak},
};

use nimbus_core::{AgentId, Kind, Labels};
use nimbus_store::{Filter, Reach, Scope, Viewer};
use parking_lot::Mutex;

/// What many agents have in common. Equal ones are the same, so that they are compared by their number.
#[derive(Debug)]
pub(crate) struct Shape {
    number: usize,
    pub(crate) kinds: Option<Arc<BTreeSet<Kind>>>,
    pub(crate) filter: Option<Arc<Filter>>,
    pub(crate) labels: Labels,
}

/// All shapes that agents have.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    made: usize,
    shapes: HashMap<ShapeKey, Weak<Shape>>,
}

type ShapeKey = (Option<Arc<BTreeSet<Kind>>>, Option<Arc<Filter>>, Labels);

/// Something that is the same for all agents of one shape, computed when it is first asked for.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    known: HashMap<usize, T, BuildHasherDefault<Scatter>>,
}

/// Spreads small numbers of our own: nobody else can choose them, and they are asked for with every agent.
#[derive(Debug, Default)]
struct Scatter(u64);

/// Labels as people write them.
pub(crate) struct Written<'a>(pub(crate) &'a Labels);

// === impl Shape ===

impl Shape {
    /// The kinds and the filter.
    pub(crate) fn reach(&self) -> Reach<'_> {
        Reach { kinds: self.kinds.as_deref(), filter: self.filter.as_ref() }
    }

    /// Whether the kind is among those subscribed to.
    pub(crate) fn covers(&self, kind: &Kind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind))
    }

    /// The scope of an agent of this shape.
    pub(crate) fn scope(&self, agent: &AgentId) -> Scope {
        let viewer = Viewer::Agent { id: agent.clone(), labels: self.labels.clone() };
        Scope { kinds: self.kinds.clone(), filter: self.filter.clone(), viewer }
    }
}

// === impl Shapes ===

impl Shapes {
    /// The shape of a scope; `None` for an observer.
    pub(crate) fn of(&self, scope: &Scope) -> Option<Arc<Shape>> {
        let Viewer::Agent { labels, .. } = &scope.viewer else { return None };
        let key = (scope.kinds.clone(), scope.filter.clone(), labels.clone());
        let mut known = self.0.lock();
        if let Some(shape) = known.shapes.get(&key).and_then(Weak::upgrade) {
            return Some(shape);
        }
        if known.shapes.len() >= 64 && known.shapes.len().is_power_of_two() {
            known.shapes.retain(|_, shape| shape.strong_count() > 0);
        }
        known.made += 1;
        let (kinds, filter, labels) = key.clone();
        let shape = Arc::new(Shape { number: known.made, kinds, filter, labels });
        known.shapes.insert(key, Arc::downgrade(&shape));
        Some(shape)
    }
}

// === impl Memo ===

impl<T> Memo<T> {
    /// What is known of a shape, or is computed now.
    pub(crate) fn of(&mut self, shape: &Shape, compute: impl FnOnce() -> T) -> &T {
        self.known.entry(shape.number).or_insert_with(compute)
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self { known: HashMap::default() }
    }
}

// === impl Scatter ===

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, number: usize) {
        // An odd number near 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

// === impl Written ===

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        self.0
            .iter()
            .enumerate()
            .try_for_each(|(at, (key, value))| write!(f, "{}{key}={value}", if at == 0 { "" } else { "," }))
    }
}
