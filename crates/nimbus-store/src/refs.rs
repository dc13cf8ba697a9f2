//! The order that references demand: referents first.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use nimbus_core::ObjectKey;

use crate::record::{Grave, Record};

/// Something that needs others.
pub(crate) trait Needs {
    fn key(&self) -> &ObjectKey;
    fn needs(&self) -> impl Iterator<Item = &ObjectKey>;
}

impl Needs for Arc<Record> {
    fn key(&self) -> &ObjectKey {
        Record::key(self)
    }

    fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        Record::needs(self)
    }
}

impl Needs for Arc<Grave> {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        Grave::needs(self)
    }
}

/// Moves referents before what refers to them, and leaves everything else in its order.
pub(crate) fn referents_first<T: Needs + Clone>(items: &mut Vec<T>) {
    if items.iter().all(|item| item.needs().next().is_none()) {
        return;
    }
    let places: HashMap<&ObjectKey, usize> = items.iter().enumerate().map(|(at, item)| (item.key(), at)).collect();
    let mut order = Vec::with_capacity(items.len());
    let mut entered = vec![false; items.len()];
    let mut stack = Vec::new();
    for start in 0..items.len() {
        stack.push((start, false));
        while let Some((at, done)) = stack.pop() {
            if done {
                order.push(at);
                continue;
            }
            if std::mem::replace(&mut entered[at], true) {
                continue;
            }
            stack.push((at, true));
            let referents = items[at].needs().filter_map(|key| places.get(key));
            stack.extend(referents.filter(|referent| !entered[**referent]).map(|referent| (*referent, false)));
        }
    }
    *items = order.into_iter().map(|at| items[at].clone()).collect();
}

/// A cycle of strong references through `start`, if there is one.
pub(crate) fn cycle_through<'a>(
    start: &ObjectKey,
    find: impl Fn(&ObjectKey) -> Option<&'a Arc<Record>>,
) -> Option<Vec<ObjectKey>> {
    let mut came_from: HashMap<ObjectKey, ObjectKey> = HashMap::new();
    let mut seen = HashSet::new();
    let mut stack = vec![start.clone()];
    while let Some(key) = stack.pop() {
        for next in find(&key).into_iter().flat_map(|record| Record::needs(record)) {
            if next == start {
                return Some(trace_back(start, &key, &came_from));
            }
            if seen.insert(next.clone()) {
                came_from.insert(next.clone(), key.clone());
                stack.push(next.clone());
            }
        }
    }
    None
}

fn trace_back(start: &ObjectKey, last: &ObjectKey, came_from: &HashMap<ObjectKey, ObjectKey>) -> Vec<ObjectKey> {
    let mut path = vec![start.clone()];
    let mut at = Some(last);
    while let Some(key) = at.filter(|key| *key != start) {
        path.push(key.clone());
        at = came_from.get(key);
    }
    path.push(start.clone());
    path.reverse();
    path
}
