//! Which objects were named, in a few bytes for each.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, Hash, Hasher, RandomState},
};

use nimbus_core::{KeyHashes, ObjectKey};

use crate::record::Record;

/// Which objects were named.
///
/// Of a name there are only two hashes, of 128 bits together, whose keys nobody knows: a publisher may name millions of
/// objects, and their names would lie between everything else that is made meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Named {
    first: RandomState,
    second: RandomState,
    names: HashSet<Name, KeyHashes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    first: u64,
    second: u64,
}

// === impl Named ===

impl Named {
    /// Adds a name. Says whether it is new.
    pub(crate) fn insert(&mut self, key: &ObjectKey) -> bool {
        self.names.insert(self.name(key.kind().as_str(), key.namespace(), key.name()))
    }

    /// Takes a name away.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.names.remove(&self.name(key.kind().as_str(), key.namespace(), key.name()));
    }

    /// Whether an object was named.
    pub(crate) fn contains(&self, record: &Record) -> bool {
        self.names.contains(&self.name(record.kind().as_str(), record.namespace(), record.name()))
    }

    fn name(&self, kind: &str, namespace: &str, name: &str) -> Name {
        let name = (kind, namespace, name);
        Name { first: self.first.hash_one(name), second: self.second.hash_one(name) }
    }
}

// === impl Name ===

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.first);
    }
}
