//! Rich statuses of single objects at one agent.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{Generation, Kind, ObjectKey};
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;
use tonic::Status;

use crate::fleet::exception::required_key;

/// What an agent says about one object at length. Nothing in it: it no longer says anything.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectStatus {
    pub(crate) key: ObjectKey,
    pub(crate) generation: Generation,
    pub(crate) status: Option<Any>,
}

/// The statuses of one agent, each with the version of the fleet at which it changed.
#[derive(Debug, Default)]
pub(crate) struct Statuses(BTreeMap<ObjectKey, (u64, Generation, Option<Any>)>);

/// How much of them is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusLimits {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
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
            let over = self.0.iter_mut().filter(|(key, (.., status))| status.is_some() && !named.contains(key));
            over.for_each(|(_, kept)| *kept = (version, Generation(0), None));
        }
        new.into_iter().map(|status| u32::from(!self.put(status, version, limits))).sum()
    }

    /// Statuses of these kinds that changed after `version`. Those that are over are told to who may know them.
    pub(crate) fn after(&self, version: u64, covers: impl Fn(&Kind) -> bool) -> Vec<v1::ObjectStatus> {
        let changed = (self.0.iter())
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
        if let Some(kept) = self.0.get_mut(&key) {
            if (kept.1, &kept.2) != (generation, &status) {
                *kept = (version, generation, status);
            }
            return true;
        }
        if status.is_none() {
            return true;
        }
        if self.0.len() >= limits.count {
            // One that is over makes room, although somebody may not have heard yet that it is.
            let over = self.0.iter().find(|(_, (.., status))| status.is_none()).map(|(key, _)| key.clone());
            let Some(over) = over else { return false };
            self.0.remove(&over);
        }
        self.0.insert(key, (version, generation, status));
        true
    }
}
