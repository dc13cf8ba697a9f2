//! Which generation of each child is on the target.
//!
//! The bus would count by itself, but a bus that has lost its memory would begin at one again, and every agent would be
//! sent everything. So the kit counts: a child keeps its generation for as long as its spec is the same, also after a
//! restart of everything, as far as it is remembered.

use std::num::NonZeroU64;

use nimbus_core::{Generation, ObjectKey};
use nimbus_store::{Draft, Op, Record};
use nimbus_wire::v1;

use crate::{
    engine::sending::Child,
    few::Few,
    publications::{Known, Publications},
};

/// Which version of a child is on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    generation: Generation,
    /// Stands for the spec.
    digest: NonZeroU64,
}

// === impl Publications ===

impl Publications {
    /// Takes what was remembered of children.
    pub(crate) fn recall(&mut self, published: &[v1::Published]) {
        for one in published {
            let Some(Ok(key)) = one.key.as_ref().map(ObjectKey::try_from) else { continue };
            self.note(&key, Version::new(Generation(one.generation), one.digest));
        }
    }

    /// A transaction has happened in which this was done.
    pub(crate) fn written(&mut self, children: &Few<Child>) {
        for Child { key, version } in children.iter() {
            match version {
                Some(version) => self.note(key, *version),
                None => self.unnote(key),
            }
        }
    }

    /// What is to be remembered of the children of an owner. In their own order: what is the same must look the same after
    /// a restart, or it would be written again.
    pub(crate) fn remembered(&self, owner: &ObjectKey) -> Vec<v1::Published> {
        let mut children: Vec<_> = self.children(owner).collect();
        children.sort_unstable();
        let published = |key: &ObjectKey| {
            let Version { generation, digest } = self.known.get(key)?.version?;
            Some(v1::Published { key: Some(key.to_wire()), generation: generation.0, digest: digest.get() })
        };
        children.into_iter().filter_map(published).collect()
    }

    /// This is on the target, as far as anybody knows.
    pub(crate) fn note(&mut self, child: &ObjectKey, version: Version) {
        match self.known.get_mut(child) {
            Some(known) => known.version = Some(version),
            None => drop(self.known.insert(child.clone(), Known { owner: None, version: Some(version) })),
        }
    }

    /// Nothing of this name is on the target.
    fn unnote(&mut self, child: &ObjectKey) {
        if let Some(known) = self.known.get_mut(child) {
            known.version = None;
            if known.owner.is_none() {
                self.known.remove(child);
            }
        }
    }
}

// === impl Version ===

impl Version {
    fn new(generation: Generation, digest: u64) -> Self {
        Self { generation, digest: NonZeroU64::new(digest).unwrap_or(NonZeroU64::MIN) }
    }

    /// The generation of a child with this spec: the one that it has if nothing has changed, else one that is higher; that of
    /// its owner if it is new.
    pub(crate) fn count(before: Option<Self>, owner: Generation, spec: &[u8]) -> Generation {
        match before {
            None => owner,
            Some(before) if before.digest == digest(spec) => before.generation,
            Some(before) => owner.max(Generation(before.generation.0.saturating_add(1))),
        }
    }

    /// That which is on the target when this was done, if it is to be there.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        let Op::Upsert(Draft { generation: Some(generation), spec, .. }) = op else { return None };
        Some(Self { generation: *generation, digest: digest(spec) })
    }

    /// That of an object.
    pub(crate) fn of_record(record: &Record) -> Self {
        Self { generation: record.generation(), digest: digest(&record.spec_bytes()) }
    }
}

/// The same on every machine and in every release, for it is remembered. Eight bytes at a time: specs are long, and each
/// is looked at. Whoever makes two specs with one digest has a child that is refused, and harms nobody else. Never
/// zero, so that a version takes no room where there is none.
fn digest(spec: &[u8]) -> NonZeroU64 {
    let mix = |hash: u64, word: [u8; 8]| {
        let product = u128::from(hash ^ u64::from_le_bytes(word)) * u128::from(MULTIPLIER);
        (product as u64 ^ (product >> 64) as u64).wrapping_add(INCREMENT)
    };
    let (words, rest) = spec.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash = words.iter().fold(spec.len() as u64, |hash, word| mix(hash, *word));
    NonZeroU64::new(mix(mix(hash, last), [0; 8])).unwrap_or(NonZeroU64::MIN)
}

/// Odd, and with as many ones as zeros; that of splitmix64 and its increment.
const MULTIPLIER: u64 = 0xbf58_476d_1ce4_e5b9;
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
