//! What one publisher knows to be on the bus, and what it does not know about.
//!
//! Nobody else writes its objects, and it has one call under way at a time. So after a kill there are few states that the
//! bus may be in, each of which is known to the byte.

use std::{collections::BTreeMap, ops::RangeInclusive};

use nimbus_wire::v1;

/// Objects by their names.
pub(crate) type Objects = BTreeMap<String, v1::Object>;

/// Changes that happen together or not at all: how objects will be, or that they will be gone.
pub(crate) type Step = BTreeMap<String, Option<v1::Object>>;

/// What one publisher knows to be on the bus.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    known: BTreeMap<String, Known>,
    /// Objects that ended, with a revision at which they had.
    ended: BTreeMap<String, u64>,
    /// The newest revision that was acknowledged.
    newest: u64,
    /// The call under way, or the one that was never answered: its steps happen in their order.
    attempt: Vec<Step>,
}

/// An object that was acknowledged.
#[derive(Debug, Clone)]
struct Known {
    /// Without its revision.
    object: v1::Object,
    revision: RangeInclusive<u64>,
}

/// What had become of a call that was never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    NoneUnderWay,
    Applied,
    /// Some of its steps, which is how a sync ends that is cut off.
    Begun,
    NotApplied,
}

/// An object without its revision.
pub(crate) fn content(object: &v1::Object) -> v1::Object {
    v1::Object { revision: 0, ..object.clone() }
}

// === impl Ledger ===

impl Ledger {
    /// An object as it was acknowledged.
    pub(crate) fn object(&self, name: &str) -> Option<&v1::Object> {
        self.known.get(name).map(|known| &known.object)
    }

    /// The revision of an object, if it is known exactly.
    pub(crate) fn revision(&self, name: &str) -> Option<u64> {
        let revision = &self.known.get(name)?.revision;
        (revision.start() == revision.end()).then(|| *revision.start())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.known.keys()
    }

    /// The revision by which an object that is gone had ended.
    pub(crate) fn ended(&self, name: &str) -> Option<u64> {
        self.ended.get(name).copied()
    }

    /// A call is about to be made.
    pub(crate) fn attempt(&mut self, steps: Vec<Step>) {
        self.attempt = steps;
    }

    /// The call was refused: nothing has changed.
    pub(crate) fn refused(&mut self) {
        self.attempt.clear();
    }

    /// The call was answered: all of it happened at this revision.
    pub(crate) fn acknowledged(&mut self, revision: u64) {
        self.happened(revision..=revision);
    }

    /// The call was answered: all of it had happened at this revision.
    pub(crate) fn acknowledged_until(&mut self, revision: u64) {
        self.happened(self.newest + 1..=revision);
    }

    fn happened(&mut self, revision: RangeInclusive<u64>) {
        for (name, object) in std::mem::take(&mut self.attempt).into_iter().flatten() {
            match object {
                Some(object) => drop(self.known.insert(name, Known { object, revision: revision.clone() })),
                None => {
                    self.known.remove(&name);
                    self.ended.insert(name, *revision.end());
                }
            }
        }
        self.newest = self.newest.max(*revision.end());
    }

    /// Compares with what the bus lists at `head`, and takes it over.
    ///
    /// # Errors
    /// If the bus is in a state that it cannot be in.
    pub(crate) fn settle(&mut self, listed: &Objects, head: u64) -> Result<Fate, String> {
        let steps = self.attempt.len();
        let mut complaint = String::new();
        for done in 0..=steps {
            match self.check(listed, head, done) {
                Ok(()) => {
                    for name in self.attempt[..done].iter().flat_map(BTreeMap::keys) {
                        self.ended.insert(name.clone(), head);
                    }
                    self.attempt.clear();
                    let take_over = |(name, object): (&String, &v1::Object)| {
                        let revision = object.revision..=object.revision;
                        (name.clone(), Known { object: content(object), revision })
                    };
                    self.known = listed.iter().map(take_over).collect();
                    return Ok(match done {
                        _ if steps == 0 => Fate::NoneUnderWay,
                        0 => Fate::NotApplied,
                        _ if done == steps => Fate::Applied,
                        _ => Fate::Begun,
                    });
                }
                Err(what) if done == 0 => complaint = what,
                Err(what) => {
                    complaint.push_str(&format!("; and with {done} of {steps} steps of the last call: {what}"));
                }
            }
        }
        Err(complaint)
    }

    /// Whether the bus has what was acknowledged and the first steps of the attempt.
    fn check(&self, listed: &Objects, head: u64, done: usize) -> Result<(), String> {
        let mut expected: BTreeMap<_, _> = (self.known.iter())
            .map(|(name, known)| (name, (&known.object, Some(&known.revision))))
            .collect();
        let mut floor = self.newest;
        for step in &self.attempt[..done] {
            let mut revision = None;
            for (name, object) in step {
                let Some(object) = object else {
                    expected.remove(name);
                    continue;
                };
                expected.insert(name, (object, None));
                let found = listed.get(name).map(|object| object.revision);
                if found.is_none_or(|found| found <= floor || found > head || revision.is_some_and(|one| one != found))
                {
                    return Err(format!("{name} is at {found:?}, not at one revision above {floor} with all others"));
                }
                revision = found;
            }
            floor = revision.unwrap_or(floor);
        }
        for (name, (object, revision)) in &expected {
            let Some(found) = listed.get(*name) else {
                return Err(format!("{name} is missing, which was acknowledged at {revision:?}"));
            };
            if content(found) != **object {
                return Err(format!("{name} is {found:?}, not {object:?}"));
            }
            if revision.is_some_and(|revision| !revision.contains(&found.revision)) {
                return Err(format!("{name} is at revision {}, but was acknowledged at {revision:?}", found.revision));
            }
        }
        match listed.keys().find(|name| !expected.contains_key(name)) {
            Some(name) => Err(format!("{name} is there, which nobody has published or somebody has deleted")),
            None => Ok(()),
        }
    }
}
