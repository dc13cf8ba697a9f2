//! The collection: one writer, many readers that never block it.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use arc_swap::ArcSwap;
use nimbus_core::{Epoch, Kind, PublisherId, Revision};
use parking_lot::Mutex;

use crate::{
    cursor::Cursor,
    feed::Feeds,
    filter::{Fields, Filter, NoFields},
    interest::{Interest, Signal},
    limits::Limits,
    plan::{Plan, check_kinds},
    publishers::{SyncId, SyncSummary},
    record::Record,
    scope::Scope,
    state::State,
    txn::{Committed, Draft, Effect, Op, Refused, Step, Txn},
    view::View,
    writer::{Touched, Writer},
};

/// How a collection is made.
pub struct Config {
    /// Identity of the history that begins here.
    pub epoch: Epoch,
    /// What is accepted.
    pub limits: Limits,
    /// Reads fields of specs, for filters.
    pub fields: Arc<dyn Fields>,
    /// Every kind is complete from the beginning, whether a publisher has synced it or not. For trying things out: after
    /// a restart, readers remove what has not been published again yet.
    pub assume_complete: bool,
    /// Frames are cut at this size. With 256 KiB, a frame is one write to the socket, and many readers share it.
    pub frame_bytes: usize,
    /// Large groups that are being sent may hold on to this much in all; beyond it, readers that have stalled in the
    /// oldest ones begin again.
    pub group_bytes: usize,
}

/// A versioned collection of objects. Cheap to clone; all clones are the same collection.
///
/// Reads never block and are consistent: a [`State`] is the whole collection at one revision.
#[derive(Clone)]
pub struct Collection(Arc<Inner>);

struct Inner {
    state: ArcSwap<State>,
    writer: Mutex<Writer>,
    interest: Arc<Interest>,
    feeds: Feeds,
}

/// Keeps the views of a filter; when the last one is dropped, they may go.
#[derive(Debug)]
pub(crate) struct FilterLease {
    store: Collection,
    filter: Arc<Filter>,
    kinds: Vec<Option<Kind>>,
}

// === impl Config ===

impl Config {
    /// The defaults, for a history of that identity.
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            limits: Limits::default(),
            fields: Arc::new(NoFields),
            assume_complete: false,
            frame_bytes: 256 << 10,
            group_bytes: 512 << 20,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("epoch", &self.epoch)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

// === impl Collection ===

impl Collection {
    /// An empty collection.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Inner {
            state: ArcSwap::from_pointee(State::new(config.epoch, config.assume_complete)),
            writer: Mutex::new(Writer::new(config.limits, config.fields)),
            interest: Arc::default(),
            feeds: Feeds::new(config.frame_bytes, config.group_bytes),
        }))
    }

    /// The whole collection as it is now.
    pub fn state(&self) -> Arc<State> {
        self.0.state.load_full()
    }

    /// Makes all changes of a transaction, at the next revision. If nothing changes, there is no revision either.
    ///
    /// # Errors
    /// If any part of it is refused; then nothing has changed.
    pub fn commit(&self, txn: &Txn) -> Result<Committed, Refused> {
        self.write(txn, None)
    }

    /// Makes all changes of a transaction at a revision that comes from outside, such as that of an upstream bus.
    ///
    /// # Errors
    /// As [`Collection::commit`], and if the revision is not above all before.
    pub fn commit_at(&self, revision: Revision, txn: &Txn) -> Result<Committed, Refused> {
        self.write(txn, Some(revision))
    }

    /// Says what a transaction would do.
    ///
    /// # Errors
    /// If it would be refused.
    pub fn plan(&self, txn: &Txn) -> Result<Committed, Refused> {
        let writer = self.0.writer.lock();
        writer.publishers.check_fence(&txn.publisher, txn.fence)?;
        let state = self.state();
        let plan = Plan::new(&writer.limits, &state, txn, state.head.next())?;
        let revision = if plan.changes.is_empty() { state.head } else { state.head.next() };
        Ok(Committed { revision, outcomes: plan.outcomes })
    }

    /// Begins a sync of these kinds: those that are not complete yet will not be before it ends.
    ///
    /// # Errors
    /// If the publisher is fenced, or there are too many kinds.
    pub fn begin_sync(&self, publisher: &PublisherId, fence: u64, kinds: BTreeSet<Kind>) -> Result<SyncId, Refused> {
        let mut writer = self.0.writer.lock();
        writer.publishers.check_fence(publisher, fence)?;
        let mut state = State::clone(&self.state());
        check_kinds(&writer.limits, &state, kinds.iter().filter(|kind| !state.kinds.contains_key(*kind)).count())?;
        writer.publishers.raise_fence(publisher, fence);
        for kind in &kinds {
            let kind = writer.kind(&mut state, kind);
            if !kind.publishers.contains_key(publisher) {
                kind.publishers.insert(publisher.clone(), false);
            }
        }
        let id = writer.publishers.begin(publisher, fence, kinds);
        self.publish(state);
        Ok(id)
    }

    /// Adds objects that should exist.
    ///
    /// # Errors
    /// If the sync is not open, or an object is refused; then none of these has changed, and the sync goes on.
    pub fn sync_items(&self, id: &SyncId, drafts: Vec<Draft>) -> Result<Committed, Refused> {
        let mut writer = self.0.writer.lock();
        let open = writer.publishers.open(id)?;
        if let Some(other) = drafts.iter().find(|draft| !open.kinds.contains(draft.key.kind())) {
            return Err(Refused::NotCovered { key: other.key.clone(), kind: other.key.kind().clone() });
        }
        let steps: Vec<Step> = drafts.into_iter().map(|draft| Op::Upsert(draft).into()).collect();
        let txn = Txn { publisher: id.publisher.clone(), fence: open.fence, steps };
        let (committed, touched) = self.write_locked(&mut writer, &txn, None)?;
        let summary = &mut writer.publishers.open(id)?.summary;
        for outcome in &committed.outcomes {
            match outcome.effect {
                Effect::Created => summary.created += 1,
                Effect::Updated => summary.updated += 1,
                _ => summary.unchanged += 1,
            }
        }
        drop(writer);
        self.0.interest.wake(touched);
        Ok(committed)
    }

    /// Ends a sync: what the publisher owns in its kinds and did not name is deleted, and the kinds are complete, as far
    /// as other publishers that have begun have finished too.
    ///
    /// # Errors
    /// If the sync is not open, or a newer instance of the publisher has written since it began; then it is given up.
    pub fn end_sync(&self, id: &SyncId) -> Result<(Revision, SyncSummary), Refused> {
        let mut writer = self.0.writer.lock();
        let mut open = writer.publishers.close(id)?;
        writer.publishers.check_fence(&id.publisher, open.fence)?;
        let mut state = State::clone(&self.state());
        let forgotten = |record: &&Arc<Record>| *record.manager() == id.publisher && !open.named.contains(record.key());
        let sweep: Vec<_> = (open.kinds.iter())
            .filter_map(|kind| state.kind(kind))
            .flat_map(|kind| kind.all().iter(None).filter(forgotten))
            .map(|record| record.key().clone())
            .collect();
        open.summary.deleted = sweep.len() as u64;
        let revision = state.head.next();
        // However many there are, they go at once.
        let limits = Limits { steps: usize::MAX, ..writer.limits.clone() };
        let sweep = Txn::sweep(id.publisher.clone(), open.fence, sweep);
        let plan = Plan::new(&limits, &state, &sweep, revision).expect("a publisher may delete what is its own");
        let mut touched = Vec::new();
        if !plan.changes.is_empty() {
            touched = writer.perform(&mut state, plan, revision);
        }
        let mut settles = state.synced.insert(id.publisher.clone()).is_none();
        for kind in &open.kinds {
            let kind = writer.kind(&mut state, kind);
            settles |= kind.publishers.insert(id.publisher.clone(), true) != Some(true);
        }
        let head = state.head;
        self.publish(state);
        drop(writer);
        if settles {
            // Somebody may have waited for it.
            self.0.interest.wake_all();
        } else {
            self.0.interest.wake(touched);
        }
        Ok((head, open.summary))
    }

    /// Gives up a sync: nothing is deleted, nothing becomes complete.
    pub fn abort_sync(&self, id: &SyncId) {
        // If it is not open any more, there is nothing to give up.
        drop(self.0.writer.lock().publishers.close(id));
    }

    /// Forgets the ends of objects up to `revision`; who is behind it must resync.
    pub fn trim(&self, revision: Revision) {
        let mut writer = self.0.writer.lock();
        let mut state = State::clone(&self.state());
        writer.trim(&mut state, revision);
        self.publish(state);
    }

    /// A reader of that scope, which raises the signal when there is something new for it.
    pub fn cursor(&self, scope: Scope, signal: Signal) -> Cursor {
        Cursor::new(self.clone(), scope, signal)
    }

    /// Wakes every reader.
    pub fn wake_all(&self) {
        self.0.interest.wake_all();
    }

    pub(crate) fn interest(&self) -> &Arc<Interest> {
        &self.0.interest
    }

    pub(crate) fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }

    /// Keeps views of a filter up to date for as long as the lease is held.
    ///
    /// They are built from a state that is already there, so that the writer goes on meanwhile.
    pub(crate) fn lease(&self, filter: &Arc<Filter>, kinds: Option<&BTreeSet<Kind>>) -> FilterLease {
        let wanted = |kind: &Kind| kinds.is_none_or(|kinds| kinds.contains(kind));
        let before = self.state();
        let fields = self.0.writer.lock().fields.clone();
        let passes = |record: &Record| filter.passes(record, &*fields);
        let built: Vec<(Kind, View)> = (before.kinds.iter())
            .filter(|(kind, of)| wanted(kind) && !of.filtered.contains_key(filter))
            .map(|(kind, of)| (kind.clone(), of.all.narrowed(before.head, passes)))
            .collect();

        let mut writer = self.0.writer.lock();
        let leased: Vec<_> = match kinds {
            None => vec![None],
            Some(kinds) => kinds.iter().cloned().map(Some).collect(),
        };
        for kind in &leased {
            writer.take_filter(&(filter.clone(), kind.clone()));
        }
        let mut state = State::clone(&self.state());
        let missing: Vec<Kind> = (state.kinds.iter())
            .filter(|(kind, of)| wanted(kind) && !of.filtered.contains_key(filter))
            .map(|(kind, _)| kind.clone())
            .collect();
        if !missing.is_empty() {
            let mut built: HashMap<_, _> = built.into_iter().collect();
            for kind in missing {
                let base = state.kinds[&kind].all.clone();
                let view = match built.remove(&kind) {
                    // What ended meanwhile must still be known.
                    Some(view) if state.horizon <= before.head => {
                        view.caught_up(&base, before.head, state.head, passes)
                    }
                    _ => base.narrowed(state.head, passes),
                };
                writer.install(&mut state, &kind, filter, view);
            }
            self.publish(state);
        }
        FilterLease { store: self.clone(), filter: filter.clone(), kinds: leased }
    }

    fn write(&self, txn: &Txn, at: Option<Revision>) -> Result<Committed, Refused> {
        let (committed, touched) = self.write_locked(&mut self.0.writer.lock(), txn, at)?;
        self.0.interest.wake(touched);
        Ok(committed)
    }

    /// Makes the changes; whoever is to be woken is woken without the lock.
    fn write_locked(
        &self,
        writer: &mut Writer,
        txn: &Txn,
        at: Option<Revision>,
    ) -> Result<(Committed, Vec<Touched>), Refused> {
        writer.publishers.check_fence(&txn.publisher, txn.fence)?;
        let mut state = State::clone(&self.state());
        let revision = at.unwrap_or_else(|| state.head.next());
        if revision <= state.head || revision == Revision(u64::MAX) {
            return Err(Refused::NotAhead { given: revision, head: state.head });
        }
        let plan = Plan::new(&writer.limits, &state, txn, revision)?;
        writer.publishers.raise_fence(&txn.publisher, txn.fence);
        writer.publishers.name(&txn.publisher, &txn.steps);
        let outcomes = plan.outcomes.clone();
        if plan.changes.is_empty() {
            return Ok((Committed { revision: state.head, outcomes }, Vec::new()));
        }
        let touched = writer.perform(&mut state, plan, revision);
        self.publish(state);
        Ok((Committed { revision, outcomes }, touched))
    }

    fn publish(&self, mut state: State) {
        state.version += 1;
        self.0.state.store(Arc::new(state));
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Collection")
            .field("epoch", &state.epoch)
            .field("head", &state.head)
            .finish_non_exhaustive()
    }
}

// === impl FilterLease ===

impl Drop for FilterLease {
    fn drop(&mut self) {
        let mut writer = self.store.0.writer.lock();
        let state = self.store.state();
        for kind in self.kinds.drain(..) {
            writer.release_filter(&state, (self.filter.clone(), kind));
        }
        if !writer.is_idle_beyond_limit() {
            return;
        }
        let mut state = State::clone(&state);
        writer.retire(&mut state);
        self.store.publish(state);
    }
}
