//! Maps by object.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

use crate::key::ObjectKey;

/// A map by object. A key knows its hash, which is not computed again.
pub type KeyMap<V> = HashMap<ObjectKey, V, KeyHashes>;

/// A set of objects.
pub type KeySet = HashSet<ObjectKey, KeyHashes>;

/// Hashes keys, and nothing else.
pub type KeyHashes = BuildHasherDefault<KeyHash>;

/// Takes the hash that a key knows as it is; strangers cannot foresee it.
#[derive(Debug, Clone, Default)]
pub struct KeyHash(u64);

// === impl KeyHash ===

impl Hasher for KeyHash {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    /// # Panics
    /// Always: only keys are hashed here, and each is one number.
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("an object key is hashed as one number")
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
