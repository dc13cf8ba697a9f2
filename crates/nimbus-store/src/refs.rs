//! The order that references demand: referents first.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use nimbus_core::ObjectKey;

use crate::record::{Grave, Record};

/// Something that needs others.
pub(crate) trait Needs {
    fn to_key(&self) -> ObjectKey;
    fn needs(&self) -> impl Iterator<Item = &ObjectKey>;
}

impl Needs for Arc<Record> {
    fn to_key(&self) -> ObjectKey {
        Record::to_key(self)
    }

    fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        Record::needs(self)
    }
}

impl Needs for Arc<Grave> {
    fn to_key(&self) -> ObjectKey {
        self.key.clone()
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
    let places: HashMap<ObjectKey, usize> = items.iter().enumerate().map(|(at, item)| (item.to_key(), at)).collect();
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

/// A cycle of strong references that can be reached from `starts`, if there is one. Looks at everything once.
pub(crate) fn find_cycle<'a>(
    starts: impl Iterator<Item = &'a ObjectKey>,
    find: impl Fn(&ObjectKey) -> Option<&'a Arc<Record>>,
) -> Option<Vec<ObjectKey>> {
    let needs = |key: &ObjectKey| find(key).map(|record| Record::needs(record).cloned().collect()).unwrap_or_default();
    let mut done = HashSet::new();
    for start in starts {
        // The way from the start to here, and what is still to be looked at from each place on it.
        let mut way: Vec<(ObjectKey, Vec<ObjectKey>)> = vec![(start.clone(), needs(start))];
        let mut on_way = HashSet::from([start.clone()]);
        while let Some((key, left)) = way.last_mut() {
            let Some(next) = left.pop() else {
                on_way.remove(key);
                done.insert(way.pop().expect("there is a last one").0);
                continue;
            };
            if on_way.contains(&next) {
                let from = way.iter().position(|(key, _)| *key == next).unwrap_or_default();
                return Some(way[from..].iter().map(|(key, _)| key.clone()).chain([next]).collect());
            }
            if !done.contains(&next) {
                on_way.insert(next.clone());
                let needed = needs(&next);
                way.push((next, needed));
            }
        }
    }
    None
}
