//! The one writer of a collection: makes the next state from a plan, and remembers what only it needs to know.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use nimbus_core::{
    Kind, ObjectKey, PublisherId, Revision,
    planted::{self, Bug},
};

use crate::{
    durable::Lost,
    filter::{Fields, Filter},
    lane::Address,
    leases::{Guard, Leases},
    limits::Limits,
    plan::{Change, Plan},
    publishers::Publishers,
    queue::Queue,
    record::Slot,
    state::{KindState, State},
    txn::Refused,
    view::View,
};

/// A lane with something new to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Touched {
    pub(crate) kind: Kind,
    pub(crate) filter: Option<Arc<Filter>>,
    pub(crate) address: Address,
}

/// What only the writer needs to know.
pub(crate) struct Writer {
    pub(crate) limits: Limits,
    pub(crate) fields: Arc<dyn Fields>,
    pub(crate) publishers: Publishers,
    pub(crate) leases: Leases,
    /// What waits for the disk, if there is one.
    pub(crate) queue: Option<Queue>,
    /// Ends of objects in the order in which they are forgotten.
    burials: VecDeque<Burial>,
    /// Tombstones that they left, in all lanes.
    graves: usize,
    /// Subscribers of each filter, for one kind or (`None`) for all kinds.
    pub(crate) filters: HashMap<FilterOf, usize>,
    /// Those without any, and how many objects their views have.
    idle_filters: VecDeque<(FilterOf, usize)>,
    idle_objects: usize,
}

/// A filter, for one kind or (`None`) for all kinds.
type FilterOf = (Arc<Filter>, Option<Kind>);

/// The end of an object, in some lanes.
#[derive(Debug)]
struct Burial {
    key: ObjectKey,
    slot: Slot,
    lanes: Vec<(Option<Arc<Filter>>, Address)>,
}

/// A few lanes per object is usual. One that names thousands of agents must not make the tombstones of all others go.
const GRAVES_PER_BURIAL: usize = 16;

// === impl Writer ===

impl Writer {
    pub(crate) fn new(limits: Limits, fields: Arc<dyn Fields>, last_token: u64) -> Self {
        Self {
            leases: Leases::new(limits.leases, last_token),
            limits,
            fields,
            publishers: Publishers::default(),
            queue: None,
            burials: VecDeque::new(),
            graves: 0,
            filters: HashMap::new(),
            idle_filters: VecDeque::new(),
            idle_objects: 0,
        }
    }

    /// Lets a writer pass, unless a newer instance of the same publisher has written, or it has lost a lease.
    pub(crate) fn check_fences(&self, publisher: &PublisherId, fence: u64, leases: &[Guard]) -> Result<(), Refused> {
        self.publishers.check_fence(publisher, fence)?;
        self.leases.check(leases)
    }

    /// Why nothing can be written.
    pub(crate) fn failure(&self) -> Option<&Arc<Lost>> {
        self.queue.as_ref()?.failure()
    }

    /// How many ends it remembers.
    pub(crate) fn tombstones(&self) -> usize {
        self.burials.len()
    }

    /// How many filters nobody is subscribed with.
    pub(crate) fn idle_filters(&self) -> usize {
        self.idle_filters.len()
    }

    /// How many objects their views have.
    pub(crate) fn idle_objects(&self) -> usize {
        self.idle_objects
    }

    /// What it remembers of ends.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> String {
        format!("{} {:#?}", self.graves, self.burials)
    }

    /// Makes the changes of a plan.
    pub(crate) fn perform(&mut self, state: &mut State, plan: &Plan<'_>, revision: Revision) -> Vec<Touched> {
        state.head = revision;
        let mut touched = Vec::new();
        // Most transactions are about one kind, and say one thing of many objects.
        for changes in plan.changes.chunk_by(|one, next| one.key.kind() == next.key.kind()) {
            self.note(state, changes);
            for run in changes.chunk_by(|one, next| one.is_birth() && next.is_birth()) {
                self.change_all(state, run, &mut touched);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        let max_graves = self.limits.tombstones.saturating_mul(GRAVES_PER_BURIAL);
        while (self.burials.len() > self.limits.tombstones || self.graves > max_graves)
            && let Some(oldest) = self.burials.pop_front()
        {
            self.forget(state, &oldest);
        }
        touched
    }

    /// Forgets tombstones up to and including `revision`, so that who is behind it must resync.
    pub(crate) fn trim(&mut self, state: &mut State, revision: Revision) {
        let before = state.horizon;
        while let Some(oldest) = self.burials.pop_front_if(|burial| burial.slot.revision <= revision) {
            self.forget(state, &oldest);
        }
        state.horizon = state.horizon.max(revision.min(state.head));
        if let Some(queue) = &mut self.queue {
            queue.changes.trimmed |= state.horizon != before;
        }
    }

    /// Remembers the instance of a publisher that wrote.
    pub(crate) fn raise_fence(&mut self, publisher: &PublisherId, fence: u64) {
        if self.publishers.raise_fence(publisher, fence)
            && let Some(queue) = &mut self.queue
        {
            queue.changes.fences.push((publisher.clone(), fence));
        }
    }

    /// Takes note that a publisher has begun a sync of a kind, or has finished one. Says whether it had not finished one
    /// before.
    pub(crate) fn announce(&mut self, state: &mut State, kind: &Kind, publisher: &PublisherId, synced: bool) -> bool {
        let of = self.kind(state, kind);
        let before = of.publishers.get(publisher).copied();
        if before.is_some_and(|before| before || !synced) {
            return false;
        }
        of.publishers.insert(publisher.clone(), synced);
        if let Some(queue) = &mut self.queue {
            queue.changes.kinds.push(kind.clone());
        }
        true
    }

    /// Takes note that a publisher has finished a sync. Says whether it is the first one.
    pub(crate) fn mark_synced(&mut self, state: &mut State, publisher: &PublisherId) -> bool {
        let first = state.synced.insert(publisher.clone()).is_none();
        if first && let Some(queue) = &mut self.queue {
            queue.changes.synced.push(publisher.clone());
        }
        first
    }

    /// A kind of the state, new if it must be.
    pub(crate) fn kind<'a>(&self, state: &'a mut State, kind: &Kind) -> &'a mut KindState {
        let new = || {
            let mut new = KindState::new();
            for (filter, of) in self.filters.keys() {
                if of.as_ref().is_none_or(|of| of == kind) && !new.filtered.contains_key(filter) {
                    new.index.insert(filter);
                    new.filtered.insert(filter.clone(), Arc::new(View::new(Revision::ZERO)));
                }
            }
            Arc::new(new)
        };
        Arc::make_mut(state.kinds.entry(kind.clone()).or_insert_with(new))
    }

    /// Adds the view of a filter to a kind that had none.
    pub(crate) fn install(&self, state: &mut State, kind: &Kind, filter: &Arc<Filter>, view: View) {
        let opened: Vec<_> = view.selectors().cloned().collect();
        let of = self.kind(state, kind);
        of.index.insert(filter);
        view.iter(None).for_each(|record| of.hold(&record.to_key(), filter));
        of.filtered.insert(filter.clone(), Arc::new(view));
        opened.into_iter().for_each(|selector| state.selectors.add(selector));
    }

    /// One subscriber more.
    pub(crate) fn take_filter(&mut self, lease: &FilterOf) {
        let users = self.filters.entry(lease.clone()).or_default();
        *users += 1;
        if *users == 1
            && let Some(at) = self.idle_filters.iter().position(|(idle, _)| idle == lease)
            && let Some((_, objects)) = self.idle_filters.remove(at)
        {
            self.idle_objects -= objects;
        }
    }

    /// One subscriber less.
    pub(crate) fn release_filter(&mut self, state: &State, lease: FilterOf) {
        let Some(users) = self.filters.get_mut(&lease) else { return };
        *users -= 1;
        if *users > 0 {
            return;
        }
        let (filter, kind) = &lease;
        let len = |kind: &Kind| state.view(kind, Some(filter)).map_or(0, View::len);
        let objects = 1 + kind.as_ref().map_or_else(|| state.kinds.keys().map(len).sum(), len);
        self.idle_objects += objects;
        self.idle_filters.push_back((lease, objects));
    }

    /// Whether more is kept for filters without subscribers than may be.
    pub(crate) fn is_idle_beyond_limit(&self) -> bool {
        self.idle_objects > self.limits.idle_filters
    }

    /// Drops the views of filters that have been idle for longest, from all of these states.
    pub(crate) fn retire(&mut self, states: &mut [&mut State]) {
        while self.is_idle_beyond_limit()
            && let Some((lease, objects)) = self.idle_filters.pop_front()
        {
            self.idle_objects -= objects;
            self.filters.remove(&lease);
            let (filter, kind) = lease;
            let used = |kind: &Kind| {
                self.filters.contains_key(&(filter.clone(), None))
                    || self.filters.contains_key(&(filter.clone(), Some(kind.clone())))
            };
            for state in &mut *states {
                let unused: Vec<Kind> = match &kind {
                    Some(kind) => vec![kind.clone()],
                    None => state.kinds.keys().cloned().collect(),
                };
                unused.iter().filter(|kind| !used(kind)).for_each(|kind| drop_view(state, kind, &filter));
            }
        }
    }

    /// Takes note of what will have to be written down of changes in one kind, and of what they come to.
    fn note(&mut self, state: &mut State, changes: &[Change<'_>]) {
        for Change { old, new, sizes, .. } in changes {
            state.objects = state.objects + usize::from(new.is_some()) - usize::from(old.is_some());
            state.bytes = state.bytes + sizes.1 - sizes.0;
        }
        let Some(queue) = &mut self.queue else { return };
        queue.changes.objects.extend(changes.iter().map(|change| change.key.clone()));
        queue.changes.bytes += changes.iter().map(|change| change.sizes.1 as usize).sum::<usize>();
        if let Some(change) = changes.first()
            && !state.kinds.contains_key(change.key.kind())
        {
            queue.changes.kinds.push(change.key.kind().clone());
        }
    }

    /// Makes one change, or the births of several objects of one kind.
    fn change_all(&mut self, state: &mut State, run: &[Change<'_>], touched: &mut Vec<Touched>) {
        let Some(first) = run.first() else { return };
        let name = first.key.kind();
        let kind = self.kind(state, name);
        if first.is_birth() && kind.filtered.is_empty() {
            let lane = |address| Touched { kind: name.clone(), filter: None, address };
            touched.extend(kind.all.bear(run).map(lane));
        } else {
            run.iter().for_each(|change| self.change(state, change, touched));
        }
    }

    fn change(&mut self, state: &mut State, change: &Change<'_>, touched: &mut Vec<Touched>) {
        let Change { key, new, slot, .. } = change;
        let key = *key;
        let fields = self.fields.clone();
        let kind = self.kind(state, key.kind());

        // Those that hold it, whatever their filter would say of it today, and those that may want it.
        let mut candidates: BTreeSet<_> = kind.holders.get(key).map(|holders| (**holders).clone()).unwrap_or_default();
        if let Some(new) = new {
            kind.index.candidates(new, &*fields, &mut candidates);
        }
        let effects = kind.all.set(key, new.as_ref(), *slot, false);
        let journal = self.queue.as_ref().filter(|_| !effects.buried.is_empty());
        let graves = journal.map(|_| kind.all.graves(*slot, &effects.buried));
        let mut all_effects = vec![(None, effects)];
        for filter in candidates {
            let Some(view) = kind.filtered.get_mut(&filter) else { continue };
            let inside = new.as_ref().filter(|new| filter.passes(new, &*fields));
            let held = view.get(key).is_some();
            if inside.is_some() || held {
                let effects = Arc::make_mut(view).set(key, inside, *slot, new.is_some());
                match (held, inside.is_some()) {
                    (false, true) => kind.hold(key, &filter),
                    (true, false) => kind.let_go(key, &filter),
                    _ => {}
                }
                all_effects.push((Some(filter), effects));
            }
        }
        let mut lanes = Vec::new();
        for (filter, effects) in all_effects {
            effects.opened.into_iter().for_each(|selector| state.selectors.add(selector));
            let lane = |address| Touched { kind: key.kind().clone(), filter: filter.clone(), address };
            touched.extend(effects.touched.into_iter().map(lane));
            lanes.extend(effects.buried.into_iter().map(|address| (filter.clone(), address)));
        }
        if let Some((queue, graves)) = self.queue.as_mut().zip(graves) {
            queue.changes.buried.push((*slot, graves));
        }
        if !lanes.is_empty() {
            self.graves += lanes.len();
            self.burials.push_back(Burial { key: key.clone(), slot: *slot, lanes });
        }
    }

    /// Takes note of an end of an object that was written down, in the lanes of the base view. They come in their order.
    pub(crate) fn restore_burial(&mut self, key: ObjectKey, slot: Slot, lanes: Vec<Address>) {
        self.graves += lanes.len();
        self.burials
            .push_back(Burial { key, slot, lanes: lanes.into_iter().map(|address| (None, address)).collect() });
    }

    fn forget(&mut self, state: &mut State, burial: &Burial) {
        if !planted::is(Bug::ForgetHorizon) {
            state.horizon = state.horizon.max(burial.slot.revision);
        }
        self.graves -= burial.lanes.len();
        if let Some(queue) = &mut self.queue
            && burial.lanes.iter().any(|(filter, _)| filter.is_none())
        {
            queue.changes.forgotten.push(burial.slot);
        }
        for (filter, address) in &burial.lanes {
            let Some(kind) = state.kinds.get_mut(burial.key.kind()) else { return };
            let kind = Arc::make_mut(kind);
            let view = match filter {
                None => &mut kind.all,
                Some(filter) => match kind.filtered.get_mut(filter) {
                    Some(view) => Arc::make_mut(view),
                    None => continue,
                },
            };
            if view.forget(address, &burial.key, burial.slot)
                && let Address::Selector(selector) = address
            {
                state.selectors.remove(selector);
            }
        }
    }
}

fn drop_view(state: &mut State, kind: &Kind, filter: &Arc<Filter>) {
    let Some(of) = state.kinds.get_mut(kind) else { return };
    let of = Arc::make_mut(of);
    let Some(view) = of.filtered.remove(filter) else { return };
    of.index.remove(filter);
    view.iter(None).for_each(|record| of.let_go(&record.to_key(), filter));
    view.selectors().for_each(|selector| state.selectors.remove(selector));
}
