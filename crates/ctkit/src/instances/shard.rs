//! Parts into which the objects of a controller are divided.

use std::fmt;

use nimbus_core::ObjectKey;

/// One of the parts into which the objects of a controller are divided, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u32);

/// Names hold no such byte, so that parts of a key cannot run into each other.
const SEPARATOR: u8 = 0;

/// Where FNV-1a begins, and by what it multiplies.
const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x0000_0100_0000_01b3);

/// A hash that is the same on every machine and in every release: instances of different versions must agree on it.
///
/// FNV-1a, and then the finalizer of splitmix64, because the low bits of FNV alone are poor.
pub(crate) fn stable_hash(parts: &[&[u8]]) -> u64 {
    let mut hash = FNV.0;
    for part in parts {
        for byte in part.iter().chain([&SEPARATOR]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV.1);
        }
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

// === impl Shard ===

impl Shard {
    /// The shard with this number.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The shard of an object, of so many; it never changes.
    ///
    /// # Panics
    /// If there are no shards at all.
    pub fn of(key: &ObjectKey, shards: u32) -> Self {
        let parts = [key.kind().as_str().as_bytes(), key.namespace().as_bytes(), key.name().as_bytes()];
        let rest = stable_hash(&parts) % u64::from(shards);
        Self(u32::try_from(rest).expect("less than the number of shards"))
    }

    /// The shard at this place in a list of all.
    pub(crate) fn at(index: usize) -> Self {
        Self(u32::try_from(index).expect("shards are counted in 32 bits"))
    }

    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
