//! What one subscriber has not been told yet.

use std::{collections::VecDeque, sync::Arc};

use nimbus_core::{KeySet, ObjectKey, Revision};
use nimbus_store::Record;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::reflector::{
    status::WatchEpoch,
    subscription::{Batch, Woken},
};

/// What one subscriber has not been told yet.
///
/// It holds names, each at most once as changed and once as listed: however far a subscriber lags, it is bounded by the
/// number of objects.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pending: Mutex<Pending>,
    filled: Notify,
    /// Told of the first list as it is read.
    early: bool,
}

#[derive(Debug, Default)]
struct Pending {
    changed: Vec<ObjectKey>,
    /// The same, to find them.
    known: KeySet,
    from_list: VecDeque<ObjectKey>,
    /// The same of a list that has not ended, as it was there.
    parts: VecDeque<Arc<Record>>,
    /// The list that is told when nothing is left of it.
    listed: Option<WatchEpoch>,
    /// All of it is of before here; not known before the end of the first list.
    revision: Option<Revision>,
}

/// A long list is told in parts of this size, so that changes need not wait for its end.
const CHUNK: usize = 1024;

// === impl Mailbox ===

impl Mailbox {
    pub(crate) fn new(early: bool) -> Self {
        Self { early, ..Self::default() }
    }

    pub(crate) fn is_early(&self) -> bool {
        self.early
    }

    /// Objects have changed.
    pub(crate) fn change(&self, keys: &[ObjectKey], revision: Revision) {
        let mut pending = self.pending.lock();
        for key in keys {
            if pending.known.insert(key.clone()) {
                pending.changed.push(key.clone());
            }
        }
        pending.revision = Some(revision);
        drop(pending);
        self.filled.notify_one();
    }

    /// A list was read, and these are new, different or gone.
    pub(crate) fn list(&self, keys: impl IntoIterator<Item = ObjectKey>, epoch: WatchEpoch, revision: Revision) {
        let mut pending = self.pending.lock();
        let before = pending.from_list.len();
        pending.from_list.extend(keys);
        if before > 0 && pending.from_list.len() > before {
            let mut keys = Vec::from(std::mem::take(&mut pending.from_list));
            keys.sort_unstable();
            keys.dedup();
            pending.from_list = keys.into();
        }
        (pending.listed, pending.revision) = (Some(epoch), Some(revision));
        drop(pending);
        self.filled.notify_one();
    }

    /// A part of the first list was read, which has not ended.
    pub(crate) fn part(&self, records: impl IntoIterator<Item = Arc<Record>>) {
        self.pending.lock().parts.extend(records);
        self.filled.notify_one();
    }

    /// What there is to tell, once there is something. What comes from a list that has not ended is there as it was read,
    /// and not among the names.
    pub(crate) async fn take(&self) -> (Batch, Vec<Arc<Record>>) {
        loop {
            if let Some(batch) = self.pending.lock().take() {
                return batch;
            }
            self.filled.notified().await;
        }
    }
}

// === impl Pending ===

impl Pending {
    fn take(&mut self) -> Option<(Batch, Vec<Arc<Record>>)> {
        if self.changed.is_empty() && self.from_list.is_empty() && self.parts.is_empty() && self.listed.is_none() {
            return None;
        }
        let known = std::mem::take(&mut self.known);
        let part = self.parts.len().min(CHUNK);
        let mut records: Vec<_> = self.parts.drain(..part).collect();
        if !known.is_empty() {
            records.retain(|record| !known.contains(record.key()));
        }
        let part = self.from_list.len().min(CHUNK - part);
        let from_list = self.from_list.drain(..part).filter(|key| !known.contains(key));
        let changed = self.changed.drain(..).map(|key| Woken { key, boot: false });
        let keys = changed.chain(from_list.map(|key| Woken { key, boot: true })).collect();
        let is_all = self.from_list.is_empty() && self.parts.is_empty();
        let listed = if is_all { self.listed.take() } else { None };
        Some((Batch { keys, listed, revision: self.revision.filter(|_| is_all) }, records))
    }
}
