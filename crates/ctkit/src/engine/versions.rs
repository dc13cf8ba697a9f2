//! Which generation of each child is on the bus.
//!
//! The bus would count by itself, but a bus that has lost its memory would begin at one again, and every agent would be
//! sent everything. So the kit counts: a child keeps its generation for as long as its spec is the same, also after a
//! restart of everything, as far as it is remembered.

use std::sync::Arc;

use nimbus_core::{Generation, KeyMap, ObjectKey};
use nimbus_store::{Draft, Op, Record};
use nimbus_wire::v1;

use crate::{engine::sending::Child, few::Few};

/// Which generation of each child is on the bus.
#[derive(Debug, Default)]
pub(crate) struct Versions(KeyMap<Version>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    generation: Generation,
    /// Stands for the spec.
    digest: u64,
}

// === impl Versions ===

impl Versions {
    /// Takes what is on the bus, which knows best.
    pub(crate) fn recover(&mut self, records: &[Arc<Record>]) {
        for record in records {
            let version = Version { generation: record.generation(), digest: digest(&record.spec_bytes()) };
            self.0.insert(record.key().clone(), version);
        }
    }

    /// Takes what was remembered of children.
    pub(crate) fn recall(&mut self, published: &[v1::Published]) {
        for one in published {
            let Some(Ok(key)) = one.key.as_ref().map(ObjectKey::try_from) else { continue };
            self.0.insert(key, Version { generation: Generation(one.generation), digest: one.digest });
        }
    }

    /// Gives children their generations: the one that they have if nothing has changed, else one that is higher; for a new
    /// child, that of its owner.
    pub(crate) fn count(&self, owner: &Record, children: &mut Few<Draft>) {
        for child in children.iter_mut().filter(|child| child.generation.is_none()) {
            let generation = match self.0.get(&child.key) {
                None => owner.generation(),
                Some(before) if before.digest == digest(&child.spec) => before.generation,
                Some(before) => owner.generation().max(Generation(before.generation.0.saturating_add(1))),
            };
            child.generation = Some(generation);
        }
    }

    /// A transaction has happened.
    pub(crate) fn committed(&mut self, children: &Few<Child>) {
        for Child { key, version } in children.iter() {
            match version {
                // The key that is held already stays.
                Some(version) => *self.0.entry(key.clone()).or_insert(*version) = *version,
                None => drop(self.0.remove(key)),
            }
        }
    }

    /// What is to be remembered of these children. In their own order: what is the same must look the same after a
    /// restart, or it would be written again.
    pub(crate) fn published<'a>(&self, children: impl Iterator<Item = &'a ObjectKey>) -> Vec<v1::Published> {
        let mut children: Vec<_> = children.collect();
        children.sort_unstable();
        let published = |key: &ObjectKey| {
            let version = self.0.get(key)?;
            Some(v1::Published { key: Some(key.to_wire()), generation: version.generation.0, digest: version.digest })
        };
        children.into_iter().filter_map(published).collect()
    }
}

// === impl Version ===

impl Version {
    /// That which is on the bus when this was done, if it is to be there.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        let Op::Upsert(Draft { generation: Some(generation), spec, .. }) = op else { return None };
        Some(Self { generation: *generation, digest: digest(spec) })
    }
}

/// The same on every machine and in every release, for it is remembered. Eight bytes at a time: specs are long, and each
/// is looked at. Whoever makes two specs with one digest has a child that is refused, and harms nobody else.
fn digest(spec: &[u8]) -> u64 {
    let mix = |hash: u64, word: [u8; 8]| {
        let product = u128::from(hash ^ u64::from_le_bytes(word)) * u128::from(MULTIPLIER);
        (product as u64 ^ (product >> 64) as u64).wrapping_add(INCREMENT)
    };
    let (words, rest) = spec.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash = words.iter().fold(spec.len() as u64, |hash, word| mix(hash, *word));
    mix(mix(hash, last), [0; 8])
}

/// Odd, and with as many ones as zeros; that of splitmix64 and its increment.
const MULTIPLIER: u64 = 0xbf58_476d_1ce4_e5b9;
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
