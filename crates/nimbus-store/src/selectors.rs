//! The selectors that audiences use, found by the labels that they match.

use imbl::{OrdMap, OrdSet};
use nimbus_core::{Labels, Selector, Term};

/// The selectors that have lanes. A clone costs a few pointers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selectors {
    used: OrdMap<Selector, Use>,
    by_term: OrdMap<Term, OrdSet<Selector>>,
    /// Those that demand no particular pair, such as `!canary`.
    rest: OrdSet<Selector>,
    /// Rises when a selector appears or disappears.
    shape: u64,
}

/// How many lanes a selector has, and which of its demands it is found by.
#[derive(Debug, Clone)]
struct Use {
    lanes: usize,
    pivot: Option<Vec<Term>>,
}

// === impl Selectors ===

impl Selectors {
    /// Rises when a selector appears or disappears.
    pub(crate) fn shape(&self) -> u64 {
        self.shape
    }

    /// One lane more.
    pub(crate) fn add(&mut self, selector: Selector) {
        if let Some(used) = self.used.get_mut(&selector) {
            used.lanes += 1;
            return;
        }
        self.shape += 1;
        // By what fewest others are found by: of `arch=amd64,host=x`, by the host.
        let others = |terms: &Vec<Term>| -> usize {
            terms.iter().filter_map(|term| self.by_term.get(term)).map(OrdSet::len).sum()
        };
        let pivot = selector.pivots().min_by_key(others);
        match &pivot {
            None => drop(self.rest.insert(selector.clone())),
            Some(terms) => {
                for term in terms {
                    self.by_term.entry(term.clone()).or_default().insert(selector.clone());
                }
            }
        }
        self.used.insert(selector, Use { lanes: 1, pivot });
    }

    /// One lane less.
    pub(crate) fn remove(&mut self, selector: &Selector) {
        let Some(used) = self.used.get_mut(selector) else { return };
        used.lanes -= 1;
        if used.lanes > 0 {
            return;
        }
        let pivot = used.pivot.take();
        self.used.remove(selector);
        self.rest.remove(selector);
        self.shape += 1;
        for term in pivot.into_iter().flatten() {
            if let Some(selectors) = self.by_term.get_mut(&term) {
                selectors.remove(selector);
                if selectors.is_empty() {
                    self.by_term.remove(&term);
                }
            }
        }
    }

    /// Those that match, in their order.
    pub(crate) fn matching(&self, labels: &Labels) -> Vec<Selector> {
        let pairs = labels
            .iter()
            .filter_map(|(key, value)| self.by_term.get(&(Box::from(key), Box::from(value))));
        let mut matching: Vec<_> = (self.rest.iter().chain(pairs.flatten()))
            .filter(|selector| selector.matches(labels))
            .cloned()
            .collect();
        matching.sort_unstable();
        matching.dedup();
        matching
    }
}
