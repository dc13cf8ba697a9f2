//! What one subscriber has not been told yet.

use std::collections::VecDeque;

use nimbus_core::{KeySet, ObjectKey, Revision};
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
}

#[derive(Debug, Default)]
struct Pending {
    changed: Vec<ObjectKey>,
    /// The same, to find them.
    known: KeySet,
    from_list: VecDeque<ObjectKey>,
    /// The list that is told when nothing is left of it.
    listed: Option<WatchEpoch>,
    /// All of it is of before here.
    revision: Revision,
}

/// A long list is told in parts of this size, so that changes need not wait for its end.
const CHUNK: usize = 1024;

// === impl Mailbox ===

impl Mailbox {
    /// Objects have changed.
    pub(crate) fn change(&self, keys: &[ObjectKey], revision: Revision) {
        let mut pending = self.pending.lock();
        for key in keys {
            if pending.known.insert(key.clone()) {
                pending.changed.push(key.clone());
            }
        }
        pending.revision = revision;
        drop(pending);
        self.filled.notify_one();
    }

    /// A list was read, and these are new, different or gone.
    pub(crate) fn list(&self, keys: impl IntoIterator<Item = ObjectKey>, epoch: WatchEpoch, revision: Revision) {
        let mut pending = self.pending.lock();
        let merge = !pending.from_list.is_empty();
        pending.from_list.extend(keys);
        if merge {
            let mut keys = Vec::from(std::mem::take(&mut pending.from_list));
            keys.sort_unstable();
            keys.dedup();
            pending.from_list = keys.into();
        }
        (pending.listed, pending.revision) = (Some(epoch), revision);
        drop(pending);
        self.filled.notify_one();
    }

    /// What there is to tell, once there is something: what changed first.
    pub(crate) async fn take(&self) -> Batch {
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
    fn take(&mut self) -> Option<Batch> {
        if self.changed.is_empty() && self.from_list.is_empty() && self.listed.is_none() {
            return None;
        }
        let part = self.from_list.len().min(CHUNK);
        let known = std::mem::take(&mut self.known);
        let from_list = self.from_list.drain(..part).filter(|key| !known.contains(key));
        let changed = self.changed.drain(..).map(|key| Woken { key, boot: false });
        let keys = changed.chain(from_list.map(|key| Woken { key, boot: true })).collect();
        let is_all = self.from_list.is_empty();
        let listed = if is_all { self.listed.take() } else { None };
        Some(Batch { keys, listed, revision: is_all.then_some(self.revision) })
    }
}
