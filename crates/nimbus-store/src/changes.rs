//! Reading what changed, in process: records as they are, nothing encoded.

use std::{collections::BTreeSet, iter, sync::Arc};

use nimbus_core::{Kind, ObjectKey, Revision, Uid};

use crate::{
    collection::Collection,
    interest::{Place, Signal},
    lane::Address,
    record::{Record, Slot},
    scope::{Scope, Viewer},
    state::State,
};

/// What became of one object since a reader last looked.
#[derive(Debug, Clone, Copy)]
pub enum Changed<'a> {
    /// It is new or different.
    Put(&'a Arc<Record>),
    /// It is gone.
    Gone {
        /// Its name.
        key: &'a ObjectKey,
        /// Its last life.
        uid: &'a Uid,
        /// When it ended.
        slot: Slot,
    },
}

/// Keeps a signal raised by the changes of some kinds, until it is dropped.
#[derive(Debug)]
pub struct Listener {
    _place: Place,
}

// === impl State ===

impl State {
    /// Whether everything that changed after `revision` is still known here. If not, a reader that was there must list
    /// everything again.
    pub fn reaches(&self, revision: Revision) -> bool {
        self.horizon <= revision && revision <= self.head
    }

    /// When anything of a kind last changed.
    pub fn last_change_of(&self, kind: &Kind) -> Revision {
        let lane = self.kind(kind).and_then(|kind| kind.all().lane(&Address::Observers));
        lane.map_or(Revision::ZERO, |lane| lane.last())
    }

    /// What changed in a kind after `after`, in order; each object once, as it is now.
    ///
    /// The cost is that of the changes, however many objects there are. Where [`State::reaches`] says no, ends of
    /// objects may be missing.
    pub fn changes(&self, kind: &Kind, after: Revision) -> impl Iterator<Item = Changed<'_>> {
        let lane = self.kind(kind).and_then(|kind| kind.all().lane(&Address::Observers));
        let mut live = lane.into_iter().flat_map(move |lane| lane.live_after(after)).peekable();
        let mut ended = lane.into_iter().flat_map(move |lane| lane.ended_after(after)).peekable();
        iter::from_fn(move || {
            let ended_first = match (live.peek(), ended.peek()) {
                (Some(record), Some(grave)) => grave.slot < record.slot(),
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if ended_first {
                ended
                    .next()
                    .map(|grave| Changed::Gone { key: &grave.key, uid: &grave.uid, slot: grave.slot })
            } else {
                live.next().map(Changed::Put)
            }
        })
    }
}

// === impl Collection ===

impl Collection {
    /// Raises the signal whenever an object of these kinds changes, until the listener is dropped.
    ///
    /// A reader that listens first and looks at a [`State`] then misses nothing.
    pub fn listen(&self, kinds: BTreeSet<Kind>, signal: &Signal) -> Listener {
        let scope = Scope { kinds: Some(Arc::new(kinds)), filter: None, viewer: Viewer::Observer };
        Listener { _place: self.interest().join(&scope, signal) }
    }
}

// === impl Changed ===

impl Changed<'_> {
    /// The name of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Put(record) => record.key(),
            Self::Gone { key, .. } => key,
        }
    }

    /// Where the change stands in the order.
    pub fn slot(&self) -> Slot {
        match self {
            Self::Put(record) => record.slot(),
            Self::Gone { slot, .. } => *slot,
        }
    }
}

#[cfg(test)]
mod tests;
