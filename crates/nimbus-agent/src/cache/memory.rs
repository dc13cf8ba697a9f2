//! What an agent must not forget, and changes to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::SystemTime,
};

use nimbus_client::Item;
use nimbus_core::{ObjectKey, Position};

use crate::cache::boot::BootId;

/// What an agent must not forget, as it was when it was last saved.
///
/// Where a version has several uses, they share it: it is one `Arc`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Memory {
    /// How far the agent had read. It goes with `desired`: one is never newer than the other.
    pub(crate) position: Option<Position>,
    /// What should be true.
    pub(crate) desired: BTreeMap<ObjectKey, Arc<Item>>,
    /// What was last made true.
    pub(crate) applied: BTreeMap<ObjectKey, Arc<Item>>,
    /// What somebody began to make true, and may have left half done.
    pub(crate) started: BTreeMap<ObjectKey, Arc<Item>>,
    /// The part of `applied` that was not recorded since the machine started, as far as anybody can tell: the machine
    /// may have forgotten it.
    pub(crate) stale: BTreeSet<ObjectKey>,
    /// When anything was last saved.
    pub(crate) saved_at: Option<SystemTime>,
    /// The boot of the machine in which anything was last saved. It says nothing of what was saved before: see `stale`.
    pub(crate) boot: Option<BootId>,
}

/// A change of what an agent must not forget. All of it is on disk, or none.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Delta {
    /// `Some(None)` forgets the position.
    pub(crate) position: Option<Option<Position>>,
    /// Objects that no longer should be true.
    pub(crate) deletes: Vec<ObjectKey>,
    /// Objects that should be true. They come after the deletes: who is in both is there.
    pub(crate) puts: Vec<Arc<Item>>,
    /// Objects that are true, or with `None` no longer are.
    pub(crate) applied: Vec<(ObjectKey, Option<Arc<Item>>)>,
    /// Objects that somebody begins to make true, or with `None` no longer does.
    pub(crate) started: Vec<(ObjectKey, Option<Arc<Item>>)>,
}
