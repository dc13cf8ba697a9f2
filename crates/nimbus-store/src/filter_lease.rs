//! Leases of filters: the views of a filter are kept for as long as somebody reads through it.

use std::{
    collections::{BTreeSet, HashMap},
    iter,
    sync::Arc,
};

use nimbus_core::{Kind, Revision};

use crate::{
    collection::Collection,
    filter::Filter,
    queue::Queue,
    record::Record,
    state::{KindState, State},
    view::View,
    writer::{Touched, Writer},
};

/// Keeps the views of a filter; when the last one is dropped, they may go.
#[derive(Debug)]
pub(crate) struct FilterLease {
    store: Collection,
    filter: Arc<Filter>,
    kinds: Vec<Option<Kind>>,
}

// === impl Collection ===

impl Collection {
    /// Keeps views of a filter up to date for as long as the lease is held.
    ///
    /// They are built from a state that is already there, so that the writer goes on meanwhile. States that wait for the
    /// disk get theirs, too, each from that of the state before: nobody who reads through the filter waits for the disk.
    pub(crate) fn lease(&self, filter: &Arc<Filter>, kinds: Option<&BTreeSet<Kind>>) -> FilterLease {
        let wanted = |kind: &Kind| kinds.is_none_or(|kinds| kinds.contains(kind));
        let before = self.state();
        let fields = self.core().lock().fields.clone();
        let passes = |record: &Record| filter.passes(record, &*fields);
        let mut built: HashMap<Kind, View> = missing(&before, filter, wanted)
            .map(|kind| (kind.clone(), before.kinds[kind].all.narrowed(before.head, passes)))
            .collect();

        let mut writer = self.core().lock();
        let leased: Vec<_> = match kinds {
            None => vec![None],
            Some(kinds) => kinds.iter().cloned().map(Some).collect(),
        };
        for kind in &leased {
            writer.take_filter(&(filter.clone(), kind.clone()));
        }
        let mut state = State::clone(&self.state());
        let from = |kind: &Kind| Some((built.remove(kind)?, before.head));
        // Nobody reads through it yet, so that nobody is to be woken.
        if install(&writer, &mut state, filter, wanted, passes, from).is_some() {
            self.core().publish(&writer, state);
        }
        if let Some(mut queue) = writer.queue.take() {
            let mut previous = State::clone(&self.state());
            for batch in queue.batches() {
                let from = |kind: &Kind| Some((View::clone(previous.view(kind, Some(filter))?), previous.head));
                let touched = install(&writer, &mut batch.state, filter, wanted, passes, from);
                batch.wake.add_readers(touched.unwrap_or_default());
                previous = batch.state.clone();
            }
            writer.queue = Some(queue);
        }
        FilterLease { store: self.clone(), filter: filter.clone(), kinds: leased }
    }
}

// === impl FilterLease ===

impl Drop for FilterLease {
    fn drop(&mut self) {
        let core = self.store.core();
        let mut writer = core.lock();
        let state = core.visible();
        for kind in self.kinds.drain(..) {
            writer.release_filter(&state, (self.filter.clone(), kind));
        }
        if !writer.is_idle_beyond_limit() {
            return;
        }
        let mut state = State::clone(&state);
        let mut queue = writer.queue.take();
        let unsettled = queue.iter_mut().flat_map(Queue::batches).map(|batch| &mut batch.state);
        let mut states: Vec<_> = iter::once(&mut state).chain(unsettled).collect();
        writer.retire(&mut states);
        writer.queue = queue;
        core.publish(&writer, state);
    }
}

/// The kinds of a state that should have a view of the filter, and have none.
fn missing<'s>(
    state: &'s State,
    filter: &Arc<Filter>,
    wanted: impl Fn(&Kind) -> bool,
) -> impl Iterator<Item = &'s Kind> {
    let missing = move |(kind, of): &(&Kind, &KindState)| wanted(kind) && !of.filtered.contains_key(filter);
    state.kinds().filter(missing).map(|(kind, _)| kind)
}

/// Adds the views of a filter that a state lacks, where it can from one of an earlier state. Says which lanes have
/// something new since then; `None` if it lacks nothing.
fn install(
    writer: &Writer,
    state: &mut State,
    filter: &Arc<Filter>,
    wanted: impl Fn(&Kind) -> bool,
    passes: impl Fn(&Record) -> bool + Copy,
    mut from: impl FnMut(&Kind) -> Option<(View, Revision)>,
) -> Option<Vec<Touched>> {
    let mut touched = Vec::new();
    let kinds: Vec<_> = missing(state, filter, wanted).cloned().collect();
    for kind in &kinds {
        let base = state.kinds[kind].all.clone();
        let (view, addresses) = match from(kind) {
            // What ended meanwhile must still be known.
            Some((view, at)) if state.horizon <= at => view.caught_up(&base, at, state.head, passes),
            _ => {
                let view = base.narrowed(state.head, passes);
                let addresses = view.addresses().collect();
                (view, addresses)
            }
        };
        let lane = |address| Touched { kind: kind.clone(), filter: Some(filter.clone()), address };
        touched.extend(addresses.into_iter().map(lane));
        writer.install(state, kind, filter, view);
    }
    (!kinds.is_empty()).then_some(touched)
}
