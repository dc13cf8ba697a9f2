//! What anybody was ever told, and what was wrong with it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use nimbus_wire::v1;
use parking_lot::Mutex;

use crate::powercut::ledger::content;

/// What anybody was ever told. All that it hears must stay true, however often the bus is killed.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    epoch: Option<u64>,
    /// The newest revision that anybody has seen.
    newest: u64,
    /// The newest of each object that subscribers were sent.
    sent: BTreeMap<String, Sent>,
    /// Which publisher wrote a transaction. No revision is given twice.
    writers: HashMap<u64, String>,
    /// Who holds a lease with a token, by name and token.
    holders: HashMap<(String, u64), String>,
    /// Kinds whose registration was acknowledged.
    kinds: Vec<String>,
    resumes: BTreeMap<Resumed, u64>,
    acknowledged: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
}

/// What subscribers were sent of an object.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    /// Without what not all of them are shown.
    Put(Box<v1::Object>, u64),
    Delete(u64),
}

/// How a subscriber was answered that came back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resumed {
    pub(crate) mode: &'static str,
    /// Whether it reads through a filter.
    pub(crate) filtered: bool,
    /// What the bus said, unless the changes followed.
    pub(crate) reason: String,
}

/// What the parts of an object are that every subscriber is shown.
pub(crate) fn shown(object: &v1::Object) -> v1::Object {
    v1::Object { audience: None, ..content(object) }
}

// === impl Witness ===

impl Witness {
    /// Something is not as it must be.
    pub(crate) fn accuse(&self, what: impl fmt::Display) {
        self.told.lock().accuse(what.to_string());
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.told.lock().violations.clone()
    }

    /// Somebody was told an epoch and a revision at which something was true.
    pub(crate) fn hear(&self, epoch: u64, revision: u64) {
        let mut told = self.told.lock();
        let before = *told.epoch.get_or_insert(epoch);
        if epoch != before {
            told.accuse(format!("the epoch is {epoch:x}, and was {before:x}"));
        }
        told.newest = told.newest.max(revision);
    }

    /// The newest revision that anybody has seen.
    pub(crate) fn newest(&self) -> u64 {
        self.told.lock().newest
    }

    /// A transaction of that publisher has this revision.
    pub(crate) fn written(&self, revision: u64, publisher: &str) {
        let mut told = self.told.lock();
        let before = told.writers.entry(revision).or_insert_with(|| publisher.to_owned()).clone();
        if before != publisher {
            told.accuse(format!("revision {revision} was given to {before}, and then to {publisher}"));
        }
    }

    /// A write of that sort was acknowledged.
    pub(crate) fn acknowledged(&self, sort: &'static str) {
        *self.told.lock().acknowledged.entry(sort).or_default() += 1;
    }

    pub(crate) fn acknowledgements(&self) -> BTreeMap<&'static str, u64> {
        self.told.lock().acknowledged.clone()
    }

    /// A subscriber was sent an object, or its end.
    pub(crate) fn sent(&self, name: &str, sent: Sent) {
        let mut told = self.told.lock();
        told.newest = told.newest.max(sent.revision());
        if told.sent.get(name).is_none_or(|before| before.revision() < sent.revision()) {
            told.sent.insert(name.to_owned(), sent);
        }
    }

    /// The newest that subscribers were sent of each object.
    pub(crate) fn all_sent(&self) -> BTreeMap<String, Sent> {
        self.told.lock().sent.clone()
    }

    /// Somebody was told who holds a lease.
    pub(crate) fn lease(&self, lease: &v1::Lease) {
        let mut told = self.told.lock();
        let (name, token, holder) = (&lease.name, lease.token, &lease.holder);
        let before = told.holders.entry((name.clone(), token)).or_insert_with(|| holder.clone()).clone();
        if before != *holder {
            let what = format!("token {token} of {name} was said to be of {before}, and then of {holder}");
            told.accuse(what);
        }
    }

    /// The registration of a kind was acknowledged.
    pub(crate) fn registered(&self, kind: String) {
        self.told.lock().kinds.push(kind);
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.told.lock().kinds.clone()
    }

    /// A subscriber came back.
    pub(crate) fn resumed(&self, how: Resumed) {
        *self.told.lock().resumes.entry(how).or_default() += 1;
    }

    pub(crate) fn resumes(&self) -> BTreeMap<Resumed, u64> {
        self.told.lock().resumes.clone()
    }
}

// === impl Told ===

impl Told {
    /// Says everything once.
    fn accuse(&mut self, what: String) {
        if !self.violations.contains(&what) {
            self.violations.push(what);
        }
    }
}

// === impl Sent ===

impl Sent {
    pub(crate) fn revision(&self) -> u64 {
        match self {
            Self::Put(_, revision) | Self::Delete(revision) => *revision,
        }
    }
}
