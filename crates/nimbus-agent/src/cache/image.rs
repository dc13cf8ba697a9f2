//! The whole memory in RAM, object by object.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use nimbus_client::Item;
use nimbus_core::{ObjectKey, Position};

use crate::cache::{
    boot::BootId,
    memory::{Delta, Memory},
};

/// The whole memory. An object of which nothing is remembered has no entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Image {
    pub(crate) position: Option<Position>,
    pub(crate) objects: BTreeMap<ObjectKey, Versions>,
}

/// The versions of one object that matter. Often they are all the same.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Versions {
    pub(crate) desired: Option<Arc<Item>>,
    pub(crate) applied: Option<Arc<Item>>,
    /// In which run of the machine it was applied.
    pub(crate) applied_in: Option<BootId>,
    pub(crate) started: Option<Arc<Item>>,
}

// === impl Image ===

impl Image {
    /// Makes a change, and calls `touched` with every object that it is about.
    pub(crate) fn apply(&mut self, delta: Delta, boot: Option<&BootId>, mut touched: impl FnMut(ObjectKey)) {
        if let Some(position) = delta.position {
            self.position = position;
        }
        let mut change = |key: ObjectKey, change: &mut dyn FnMut(&mut Versions)| {
            let versions = self.objects.entry(key.clone()).or_default();
            change(versions);
            if versions.is_empty() {
                self.objects.remove(&key);
            }
            touched(key);
        };
        for key in delta.deletes {
            change(key, &mut |versions| versions.desired = None);
        }
        for item in delta.puts {
            change(item.key().clone(), &mut |versions| versions.desired = Some(item.clone()));
        }
        for (key, item) in delta.applied {
            change(key, &mut |versions| {
                versions.applied_in = item.as_ref().and(boot).cloned();
                versions.applied.clone_from(&item);
            });
        }
        for (key, item) in delta.started {
            change(key, &mut |versions| versions.started.clone_from(&item));
        }
    }

    /// The memory that this is, in a given run of the machine.
    pub(crate) fn to_memory(&self, now: Option<&BootId>, saved: Option<(SystemTime, Option<BootId>)>) -> Memory {
        let (saved_at, boot) = saved.map_or((None, None), |(at, boot)| (Some(at), boot));
        let mut memory = Memory { position: self.position, saved_at, boot, ..Memory::default() };
        for (key, versions) in &self.objects {
            let uses = [
                (&versions.desired, &mut memory.desired),
                (&versions.applied, &mut memory.applied),
                (&versions.started, &mut memory.started),
            ];
            for (version, map) in uses {
                if let Some(item) = version {
                    map.insert(key.clone(), item.clone());
                }
            }
            if versions.applied.is_some() && (now.is_none() || versions.applied_in.as_ref() != now) {
                memory.stale.insert(key.clone());
            }
        }
        memory
    }
}

// === impl Versions ===

impl Versions {
    pub(crate) fn is_empty(&self) -> bool {
        self.desired.is_none() && self.applied.is_none() && self.started.is_none()
    }
}
