//! Writes, whoever makes them: the calls of `Publisher`, and the program that the bus is a part of.

use std::{
    collections::BTreeSet,
    iter,
    sync::{Arc, atomic::Ordering},
};

use nimbus_core::{Kind, ObjectKey, PublisherId, Revision};
use nimbus_store::{Collection, Committed, Draft, Effect, Guard, Lost, Outcome, Refused, SyncId, SyncSummary, Txn};
use tokio::time::Instant;

use crate::{inner::Inner, referring::upsert};

/// A sync that has begun. Dropping it gives it up: nothing is deleted.
pub struct OpenSync {
    inner: Arc<Inner>,
    guarded: bool,
    id: Option<SyncId>,
}

// === impl Inner ===

impl Inner {
    /// Makes all changes of a transaction, or none. When this returns, they are durable, if the collection is.
    pub(crate) async fn submit(&self, txn: &Txn) -> Result<Committed, Refused> {
        let now = Instant::now();
        let ticket = self.attempt(txn, now, Collection::submit)?;
        let committed = self.metrics.committing(ticket).await.map_err(|lost| self.lost(lost))?;
        self.note(&committed, txn.steps.iter().map(|step| step.op.key().kind()), now);
        self.heard_of(txn);
        Ok(committed)
    }

    /// Says what a transaction would do.
    pub(crate) fn plan(&self, txn: &Txn) -> Result<Committed, Refused> {
        let planned = self.attempt(txn, Instant::now(), Collection::plan)?;
        self.heard_of(txn);
        Ok(planned)
    }

    /// Begins a sync of these kinds.
    pub(crate) async fn begin_sync(
        self: &Arc<Self>,
        publisher: &PublisherId,
        fence: u64,
        kinds: &BTreeSet<Kind>,
        leases: Vec<Guard>,
    ) -> Result<OpenSync, Refused> {
        let guarded = !leases.is_empty();
        self.tell_time(guarded, Instant::now());
        let allowed = self.check_publisher(publisher);
        let begun = allowed.and_then(|()| self.store.submit_begin(publisher, fence, kinds.clone(), leases));
        let begun = begun.inspect_err(|refused| self.count_refusal(refused))?;
        let id = begun.await.map_err(|lost| self.lost(lost))?;
        self.hear(publisher, kinds.iter());
        self.readiness.mark();
        Ok(OpenSync { inner: self.clone(), guarded, id: Some(id) })
    }

    fn attempt<T>(
        &self,
        txn: &Txn,
        now: Instant,
        act: impl FnOnce(&Collection, &Txn) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        self.tell_time(!txn.leases.is_empty(), now);
        let done = self.check_publisher(&txn.publisher).and_then(|()| act(&self.store, txn));
        let done = done.map_err(|refused| self.name_field(refused, |step| upsert(&txn.steps.get(step)?.op)));
        done.inspect_err(|refused| self.count_refusal(refused))
    }

    /// Takes note of a transaction that was not refused.
    fn heard_of(&self, txn: &Txn) {
        self.metrics.transaction("committed");
        let state = self.store.state();
        let written = (txn.steps.iter())
            .map(|step| step.op.key().kind())
            .filter(|kind| state.kind(kind).is_some());
        self.hear(&txn.publisher, written);
        self.metrics.set_used("objects", state.objects());
        if self.kinds.swap(state.kinds().count(), Ordering::Relaxed) != state.kinds().count() {
            self.metrics.set_used("kinds", state.kinds().count());
            self.readiness.mark();
        }
    }

    /// Nothing can be written any more.
    fn lost(&self, lost: Lost) -> Refused {
        let refused = Refused::Lost(lost);
        self.count_refusal(&refused);
        self.readiness.mark();
        refused
    }

    /// The collection looks at no clock. Only who shows leases needs it to know the time.
    fn tell_time(&self, guarded: bool, now: Instant) {
        if guarded {
            self.store.tell_time(now.into_std());
        }
    }

    /// Takes note of what a transaction did to objects of these kinds, and of when it was published, if it changed
    /// anything.
    fn note<'a>(&self, committed: &Committed, kinds: impl Iterator<Item = &'a Kind>, now: Instant) {
        self.metrics.count_changes(&committed.outcomes);
        let changed = |outcome: &Outcome| match outcome.effect {
            Effect::Created | Effect::Updated | Effect::Deleted => true,
            // It may have been marked before.
            Effect::Deleting => outcome.revision == committed.revision,
            _ => false,
        };
        let changed = committed.outcomes.iter().zip(kinds).filter(|(outcome, _)| changed(outcome));
        let mut kinds = changed.map(|(_, kind)| kind);
        if let Some(first) = kinds.next() {
            let kind = kinds.all(|kind| kind == first).then_some(first);
            self.fleet.published(committed.revision, kind, now);
        }
    }

    fn count_refusal(&self, refused: &Refused) {
        self.metrics.refuse_transaction(refused);
    }
}

// === impl OpenSync ===

impl OpenSync {
    /// Adds objects that should exist.
    ///
    /// # Errors
    /// If the sync was replaced, a lease is lost, or an object is refused; then none of these has changed, and the sync
    /// goes on.
    pub async fn items(&mut self, mut drafts: Vec<Draft>) -> Result<Committed, Refused> {
        self.inner.add_declared(&mut drafts)?;
        self.complete_items(drafts).await
    }

    /// The same, with everything that they refer to.
    pub(crate) async fn complete_items(&mut self, drafts: Vec<Draft>) -> Result<Committed, Refused> {
        let (inner, now, id) = (&self.inner, Instant::now(), self.id());
        inner.tell_time(self.guarded, now);
        let kinds: Vec<Kind> = drafts.iter().map(|draft| draft.key.kind().clone()).collect();
        let referring = drafts.iter().any(|draft| !draft.refs.is_empty()).then(|| drafts.clone());
        let done = inner.store.submit_items(id, drafts);
        let done = done.map_err(|refused| inner.name_field(refused, |step| referring.as_ref()?.get(step)));
        let committed = done.inspect_err(|refused| inner.count_refusal(refused))?;
        let committed = inner.metrics.committing(committed).await.map_err(|lost| inner.lost(lost))?;
        inner.note(&committed, kinds.iter(), now);
        inner.hear(id.publisher(), iter::empty());
        Ok(committed)
    }

    /// Says that these should exist as they are, if they are there.
    ///
    /// # Errors
    /// If the sync was replaced, or one of them is not covered by it.
    pub fn keep(&mut self, keys: impl IntoIterator<Item = ObjectKey>) -> Result<(), Refused> {
        let kept = self.inner.store.sync_keep(self.id(), keys);
        kept.inspect_err(|refused| self.inner.count_refusal(refused))?;
        self.inner.hear(self.id().publisher(), iter::empty());
        Ok(())
    }

    /// Ends it: what the publisher owns in its kinds and did not name is deleted, and the kinds are complete, as far as
    /// other publishers that have begun have finished too.
    ///
    /// # Errors
    /// If the sync was replaced, a newer instance of the publisher has written, or a lease is lost; then it is given up.
    pub async fn end(mut self) -> Result<(Revision, SyncSummary), Refused> {
        let now = Instant::now();
        self.inner.tell_time(self.guarded, now);
        let done = self.inner.store.submit_end(self.id());
        let ended = done.inspect_err(|refused| self.inner.count_refusal(refused))?;
        self.id = None;
        let (revision, summary) = self.inner.metrics.committing(ended).await.map_err(|lost| self.inner.lost(lost))?;
        if summary.deleted > 0 {
            self.inner.fleet.published(revision, None, now);
        }
        self.inner.metrics.sync("ended");
        self.inner.metrics.set_used("objects", self.inner.store.state().objects());
        self.inner.readiness.mark();
        Ok((revision, summary))
    }

    fn id(&self) -> &SyncId {
        self.id.as_ref().expect("it is open until it ends")
    }
}

impl Drop for OpenSync {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.inner.metrics.sync("aborted");
            self.inner.store.abort_sync(&id);
        }
    }
}

impl std::fmt::Debug for OpenSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSync").field("id", &self.id).finish_non_exhaustive()
    }
}
