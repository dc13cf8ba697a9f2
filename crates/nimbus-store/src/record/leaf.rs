//! A digest that is computed when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};

use nimbus_core::Digest;

/// A digest that is computed when somebody asks, and remembered. Nobody waits for anybody: several who ask first compute
/// the same.
///
/// It takes no more than the digest: the first half is zero until both are written. Of 2^64 digests, one has such a half
/// and is computed each time.
#[derive(Default)]
pub(crate) struct Leaf {
    first: AtomicU64,
    second: AtomicU64,
}

// === impl Leaf ===

impl Leaf {
    /// The digest, which `compute` gives if nobody has asked before.
    pub(crate) fn get_or_compute(&self, compute: impl FnOnce() -> Digest) -> Digest {
        let first = self.first.load(Ordering::Acquire);
        if first != 0 {
            let second = self.second.load(Ordering::Relaxed);
            return Digest::from((u128::from(first) << 64 | u128::from(second)).to_be_bytes());
        }
        let digest = compute();
        let number = u128::from_be_bytes(*digest.as_bytes());
        self.second.store(number as u64, Ordering::Relaxed);
        // Whoever sees this half sees the other one.
        self.first.store((number >> 64) as u64, Ordering::Release);
        digest
    }
}
