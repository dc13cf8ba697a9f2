//! Rich statuses of single objects at one agent.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{Generation, Kind, ObjectKey};
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;
use tonic::Status;

use crate::fleet::exception::{key_bytes, required_key};

/// What an agent says about one object at length. Nothing in it: it no longer says anything.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectStatus {
    pub(crate) key: ObjectKey,
    pub(crate) generation: Generation,
    pub(crate) status: Option<Any>,
}

/// The statuses of one agent, each with the version of the fleet at which it changed.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    kept: BTreeMap<ObjectKey, (u64, Generation, Option<Any>)>,
    /// Those of them that are over, and make room for others.
    over: BTreeSet<ObjectKey>,
    /// What they take, nearly.
    bytes: usize,
}

/// How much of them is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusLimits {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
    /// Bytes of all of them together.
    pub(crate) room: usize,
}

// === impl ObjectStatus ===

impl ObjectStatus {
    /// Checks and takes a status; `path` names it in the request.
    pub(crate) fn parse(wire: v1::ObjectStatus, path: &str) -> Result<Self, Status> {
        let key = required_key(wire.key.as_ref(), &format!("{path}.key"))?;
        Ok(Self { key, generation: Generation(wire.generation), status: wire.status })
    }
}

// === impl Statuses ===

impl Statuses {
    /// Takes what a report says, all there is if it is `full`. Returns how many there was no room for.
    pub(crate) fn take(&mut self, new: Vec<ObjectStatus>, full: bool, version: u64, limits: StatusLimits) -> u32 {
        if full {
            let named: BTreeSet<ObjectKey> = new.iter().map(|status| status.key.clone()).collect();
            let over = self
                .kept
                .iter_mut()
                .filter(|(key, (.., status))| status.is_some() && !named.contains(key));
            for (key, kept) in over {
                self.bytes -= content(kept.2.as_ref());
                *kept = (version, Generation(0), None);
                self.over.insert(key.clone());
            }
        }
        new.into_iter().map(|status| u32::from(!self.put(status, version, limits))).sum()
    }

    /// Statuses of these kinds that changed after `version`. Those that are over are told to who may know them.
    pub(crate) fn after(&self, version: u64, covers: impl Fn(&Kind) -> bool) -> Vec<v1::ObjectStatus> {
        let changed = (self.kept.iter())
            .filter(|(key, (at, _, status))| *at > version && (version > 0 || status.is_some()) && covers(key.kind()));
        let to_wire = |(key, (_, generation, status)): (&ObjectKey, &(u64, Generation, Option<Any>))| {
            v1::ObjectStatus { key: Some(key.to_wire()), generation: generation.0, status: status.clone() }
        };
        changed.map(to_wire).collect()
    }

    fn put(&mut self, new: ObjectStatus, version: u64, limits: StatusLimits) -> bool {
        let ObjectStatus { key, generation, status } = new;
        if status.as_ref().is_some_and(|status| status.encoded_len() > limits.bytes) {
            return false;
        }
        if let Some(kept) = self.kept.get_mut(&key) {
            if (kept.1, &kept.2) != (generation, &status) {
                let others = self.bytes - content(kept.2.as_ref());
                // What was there is out of date, and goes even if there is no room for what replaces it.
                let fits = status.is_none() || others + content(status.as_ref()) <= limits.room;
                let status = status.filter(|_| fits);
                if status.is_none() {
                    self.over.insert(key);
                } else {
                    self.over.remove(&key);
                }
                self.bytes = others + content(status.as_ref());
                *kept = (version, generation, status);
                return fits;
            }
            return true;
        }
        if status.is_none() {
            return true;
        }
        let needed = frame(&key) + content(status.as_ref());
        while self.kept.len() >= limits.count || self.bytes + needed > limits.room {
            // One that is over makes room, although somebody may not have heard yet that it is.
            let Some(over) = self.over.pop_first() else { return false };
            self.kept.remove(&over);
            self.bytes -= frame(&over);
        }
        self.bytes += needed;
        self.kept.insert(key, (version, generation, status));
        true
    }

    /// What they take in memory, nearly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What these would take, if all of them were kept.
pub(crate) fn most_bytes(statuses: &[ObjectStatus]) -> usize {
    statuses.iter().map(|status| frame(&status.key) + content(status.status.as_ref())).sum()
}

/// What one status takes without its content.
fn frame(key: &ObjectKey) -> usize {
    key_bytes(key) + size_of::<(u64, Generation, Option<Any>)>()
}

fn content(status: Option<&Any>) -> usize {
    status.map_or(0, |status| status.type_url.len() + status.value.len())
}
