//! Digests of sets of objects: equal digests mean equal sets.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::ObjectKey;

/// Of one object: 16 bytes, of which the first is the bucket. Of a set: the XOR of its members, so that adding and
/// removing one costs the same however large the set is, and readers need no hash function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest([u8; 16]);

/// The digest of a set, divided into 256 buckets by key.
#[derive(Clone, PartialEq, Eq)]
pub struct Buckets(Box<[Digest; 256]>);

/// A set of buckets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BucketSet([u8; 32]);

/// Computes the digest of one object from its parts, each framed by its length.
#[derive(Debug, Clone)]
pub struct LeafHasher {
    bucket: u8,
    state: Sha256,
}

// === impl Digest ===

impl Digest {
    /// The digest of nothing.
    pub const ZERO: Self = Self([0; 16]);

    /// Takes a digest from outside; `None` if it does not have 16 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes as they travel.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The bucket, if this is the digest of one object.
    pub const fn bucket(&self) -> u8 {
        self.0[0]
    }

    /// Adds to a set, or takes from it.
    pub fn toggle(&mut self, other: Self) {
        *self = Self((u128::from_ne_bytes(self.0) ^ u128::from_ne_bytes(other.0)).to_ne_bytes());
    }

    /// The same object with `extra` mixed in; the bucket stays.
    #[must_use]
    pub fn mixed(mut self, extra: Self) -> Self {
        let bucket = self.0[0];
        self.toggle(extra);
        self.0[0] = bucket;
        self
    }
}

impl From<[u8; 16]> for Digest {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromIterator<Self> for Digest {
    fn from_iter<I: IntoIterator<Item = Self>>(leaves: I) -> Self {
        let mut sum = Self::ZERO;
        leaves.into_iter().for_each(|leaf| sum.toggle(leaf));
        sum
    }
}

// === impl Buckets ===

impl Buckets {
    /// Bytes of the wire form.
    pub const WIRE_LEN: usize = 4096;

    /// Takes 256 digests of 16 bytes from outside; `None` if there are not that many bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::WIRE_LEN {
            return None;
        }
        let mut buckets = Self::default();
        for (bucket, chunk) in buckets.0.iter_mut().zip(bytes.chunks_exact(16)) {
            *bucket = Digest::from_slice(chunk)?;
        }
        Some(buckets)
    }

    /// The bytes as they travel.
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.iter().flat_map(|bucket| bucket.0).collect()
    }

    /// Adds an object to the set, or takes it from it.
    pub fn toggle(&mut self, leaf: Digest) {
        self.0[usize::from(leaf.bucket())].toggle(leaf);
    }

    /// Adds a set of other objects.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            bucket.toggle(*theirs);
        }
    }

    /// The digest of the whole set.
    pub fn root(&self) -> Digest {
        self.0.iter().copied().collect()
    }

    /// The buckets in which two sets differ.
    pub fn differing(&self, other: &Self) -> BucketSet {
        let mut set = BucketSet::NONE;
        for bucket in 0..=u8::MAX {
            if self.0[usize::from(bucket)] != other.0[usize::from(bucket)] {
                set.insert(bucket);
            }
        }
        set
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self(Box::new([Digest::ZERO; 256]))
    }
}

impl fmt::Debug for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buckets({})", self.root())
    }
}

// === impl BucketSet ===

impl BucketSet {
    /// No bucket.
    pub const NONE: Self = Self([0; 32]);

    /// Every bucket.
    pub const ALL: Self = Self([u8::MAX; 32]);

    /// Takes a bit map from outside; `None` if it does not have 32 bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bit map as it travels, lowest bit first.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Adds a bucket.
    pub fn insert(&mut self, bucket: u8) {
        self.0[usize::from(bucket >> 3)] |= 1 << (bucket & 7);
    }

    /// Whether a bucket is in the set.
    pub const fn contains(&self, bucket: u8) -> bool {
        self.0[(bucket >> 3) as usize] & (1 << (bucket & 7)) != 0
    }

    /// How many buckets there are.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|byte| byte.count_ones()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }
}

impl fmt::Debug for BucketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketSet({} of 256)", self.len())
    }
}

// === impl LeafHasher ===

impl LeafHasher {
    /// Begins the digest of the object with this key.
    pub fn new(key: &ObjectKey) -> Self {
        Self::named(key.kind().as_str(), key.namespace(), key.name())
    }

    /// The same for a key that is in parts.
    pub fn named(kind: impl AsRef<[u8]>, namespace: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Self {
        let mut names = Self { bucket: 0, state: Sha256::new() };
        names.part(kind.as_ref());
        names.part(namespace.as_ref());
        names.part(name.as_ref());
        let bucket = names.state.clone().finalize()[0];
        Self { bucket, ..names }
    }

    /// Begins a digest that belongs to no bucket, to be mixed into others.
    pub fn extra() -> Self {
        Self { bucket: 0, state: Sha256::new() }
    }

    /// Adds a part.
    pub fn part(&mut self, bytes: &[u8]) {
        self.state.update((bytes.len() as u64).to_le_bytes());
        self.state.update(bytes);
    }

    /// The digest of all parts.
    pub fn finish(self) -> Digest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.state.finalize()[..16]);
        digest[0] = self.bucket;
        Digest(digest)
    }
}
