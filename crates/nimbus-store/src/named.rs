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
/// objects, and their names would lie between everything else that is made meanwhile. The first is the one that the key of
/// an object knows already.
#[derive(Debug, Default)]
pub(crate) struct Named {
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
        self.names.insert(self.name(key))
    }

    /// Takes a name away.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.names.remove(&self.name(key));
    }

    /// Whether an object was named.
    pub(crate) fn contains(&self, record: &Record) -> bool {
        self.names.contains(&self.name(&record.to_key()))
    }

    fn name(&self, key: &ObjectKey) -> Name {
        let mut second = self.second.build_hasher();
        // Neither of the first two can be taken for a part of what follows.
        let lengths = [key.kind().as_str().len() as u32, key.namespace().len() as u32];
        second.write_u64(u64::from(lengths[0]) << 32 | u64::from(lengths[1]));
        second.write(key.kind().as_str().as_bytes());
        second.write(key.namespace().as_bytes());
        second.write(key.name().as_bytes());
        Name { first: KeyHashes::default().hash_one(key), second: second.finish() }
    }
}

// === impl Name ===

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.first);
    }
}
