//! Syncs: a publisher names all that should exist, and the rest goes.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::{Kind, ObjectKey, PublisherId, Revision};

use crate::{
    collection::Collection,
    leases::Guard,
    limits::Limits,
    plan::{Plan, check_kinds},
    publishers::{SyncId, SyncSummary},
    queue::Wake,
    record::Record,
    ticket::Ticket,
    txn::{Committed, Draft, Effect, Op, Refused, Step, Txn},
};

// === impl Collection ===

impl Collection {
    /// Begins a sync of these kinds: those that are not complete yet will not be before it ends.
    ///
    /// A sync does not outlive the process: after a restart, its publisher begins again.
    ///
    /// # Errors
    /// If the publisher is fenced, or there are too many kinds.
    pub fn begin_sync(&self, publisher: &PublisherId, fence: u64, kinds: BTreeSet<Kind>) -> Result<SyncId, Refused> {
        Ok(self.submit_begin(publisher, fence, kinds, Vec::new())?.wait()?)
    }

    /// As [`Collection::begin_sync`], without blocking, for a publisher that must hold leases, from the beginning to the
    /// end.
    ///
    /// # Errors
    /// As [`Collection::begin_sync`], and if one of the leases is lost.
    pub fn submit_begin(
        &self,
        publisher: &PublisherId,
        fence: u64,
        kinds: BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<Ticket<SyncId>, Refused> {
        let mut writer = self.core().lock_to_write()?;
        writer.check_fences(publisher, fence, &leases)?;
        let mut state = self.core().tip(&writer);
        check_kinds(&writer.limits, &state, kinds.iter().filter(|kind| !state.kinds.contains_key(*kind)).count())?;
        writer.raise_fence(publisher, fence);
        for kind in &kinds {
            writer.announce(&mut state, kind, publisher, false);
        }
        let id = writer.publishers.begin(publisher, fence, kinds, leases);
        Ok(self.core().settle(writer, state, Wake::NOBODY, id))
    }

    /// Adds objects that should exist.
    ///
    /// # Errors
    /// If the sync is not open, a lease is lost, or an object is refused; then none of these has changed, and the sync goes on.
    pub fn sync_items(&self, id: &SyncId, drafts: Vec<Draft>) -> Result<Committed, Refused> {
        Ok(self.submit_items(id, drafts)?.wait()?)
    }

    /// As [`Collection::sync_items`], without blocking.
    ///
    /// # Errors
    /// As [`Collection::sync_items`].
    pub fn submit_items(&self, id: &SyncId, drafts: Vec<Draft>) -> Result<Ticket, Refused> {
        let mut writer = self.core().lock_to_write()?;
        let open = writer.publishers.open(id)?;
        if let Some(other) = drafts.iter().find(|draft| !open.kinds.contains(draft.key.kind())) {
            return Err(Refused::NotCovered { key: other.key.clone(), kind: other.key.kind().clone() });
        }
        let steps: Vec<Step> = drafts.into_iter().map(|draft| Op::Upsert(draft).into()).collect();
        let txn = Txn { publisher: id.publisher.clone(), fence: open.fence, leases: open.leases.clone(), steps };
        self.write_locked(writer, &txn, None, |writer, committed| {
            let Ok(open) = writer.publishers.open(id) else { return };
            for outcome in &committed.outcomes {
                match outcome.effect {
                    Effect::Created => open.summary.created += 1,
                    Effect::Updated => open.summary.updated += 1,
                    _ => open.summary.unchanged += 1,
                }
            }
        })
    }

    /// Says of objects that they should exist as they are, whatever that is by now. Of those that do not exist, or belong
    /// to somebody else, it says nothing.
    ///
    /// # Errors
    /// If the sync is not open, or does not cover an object.
    pub fn sync_keep(&self, id: &SyncId, keys: impl IntoIterator<Item = ObjectKey>) -> Result<(), Refused> {
        let mut writer = self.core().lock_to_write()?;
        let state = self.core().tip(&writer);
        let open = writer.publishers.open(id)?;
        for key in keys {
            if !open.kinds.contains(key.kind()) {
                return Err(Refused::NotCovered { kind: key.kind().clone(), key });
            }
            let own = state.get(&key).is_some_and(|record| *record.manager() == id.publisher);
            open.summary.unchanged += u64::from(own && open.named.insert(&key));
        }
        Ok(())
    }

    /// Ends a sync: what the publisher owns in its kinds and did not name is deleted, and the kinds are complete, as far
    /// as other publishers that have begun have finished too.
    ///
    /// # Errors
    /// If the sync is not open, a newer instance of the publisher has written since it began, or a lease is lost; then it
    /// is given up.
    pub fn end_sync(&self, id: &SyncId) -> Result<(Revision, SyncSummary), Refused> {
        Ok(self.submit_end(id)?.wait()?)
    }

    /// As [`Collection::end_sync`], without blocking.
    ///
    /// # Errors
    /// As [`Collection::end_sync`].
    pub fn submit_end(&self, id: &SyncId) -> Result<Ticket<(Revision, SyncSummary)>, Refused> {
        let mut writer = self.core().lock_to_write()?;
        let mut open = writer.publishers.close(id)?;
        writer.check_fences(&id.publisher, open.fence, &open.leases)?;
        let mut state = self.core().tip(&writer);
        let forgotten = |record: &&Arc<Record>| *record.manager() == id.publisher && !open.named.contains(record);
        let sweep: Vec<_> = (open.kinds.iter())
            .filter_map(|kind| state.kind(kind))
            .flat_map(|kind| kind.all().iter(None).filter(forgotten))
            .map(|record| record.to_key())
            .collect();
        let revision = state.head.next();
        // However many there are, they go at once.
        let limits = Limits { steps: usize::MAX, ..writer.limits.clone() };
        let sweep = Txn::sweep(id.publisher.clone(), open.fence, sweep);
        let plan = Plan::new(&limits, &state, &sweep, revision).expect("a publisher may delete what is its own");
        // Those that were marked before are not marked again.
        open.summary.deleted = plan.changes.len() as u64;
        let mut touched = Vec::new();
        if !plan.changes.is_empty() {
            touched = writer.perform(&mut state, &plan, revision);
        }
        let mut settles = writer.mark_synced(&mut state, &id.publisher);
        for kind in &open.kinds {
            settles |= writer.announce(&mut state, kind, &id.publisher, true);
        }
        let head = state.head;
        // Somebody may have waited for it.
        let wake = if settles { Wake::All } else { Wake::Readers(touched) };
        Ok(self.core().settle(writer, state, wake, (head, open.summary)))
    }

    /// Gives up a sync: nothing is deleted, nothing becomes complete.
    pub fn abort_sync(&self, id: &SyncId) {
        // If it is not open any more, there is nothing to give up.
        drop(self.core().lock().publishers.close(id));
    }
}
