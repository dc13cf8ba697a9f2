//! The one writer of a collection: checks a transaction as a whole, then makes the next state.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use nimbus_core::{Generation, Kind, LeafHasher, ObjectKey, PublisherId, Revision, Uid};

use crate::{
    filter::{Fields, Filter},
    lane::Address,
    limits::Limits,
    publishers::Publishers,
    record::{Content, Record, Slot},
    refs,
    state::{KindState, State},
    txn::{Draft, Effect, Op, Outcome, Precondition, Reason, Refused, StatusDraft, Step, Txn},
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
struct Burial {
    key: ObjectKey,
    slot: Slot,
    lanes: Vec<(Option<Arc<Filter>>, Address)>,
}

/// A few lanes per object is usual. One that names thousands of agents must not make the tombstones of all others go.
const GRAVES_PER_BURIAL: usize = 16;

/// A change of one object that will happen.
pub(crate) struct Change {
    key: ObjectKey,
    old: Option<Arc<Record>>,
    new: Option<Arc<Record>>,
    slot: Slot,
}

/// A transaction that can happen.
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) outcomes: Vec<Outcome>,
}

// === impl Writer ===

impl Writer {
    pub(crate) fn new(limits: Limits, fields: Arc<dyn Fields>) -> Self {
        Self {
            limits,
            fields,
            publishers: Publishers::default(),
            burials: VecDeque::new(),
            graves: 0,
            filters: HashMap::new(),
            idle_filters: VecDeque::new(),
            idle_objects: 0,
        }
    }

    /// Decides what a transaction would do at `revision`, or why it must not.
    pub(crate) fn plan(&self, state: &State, txn: &Txn, revision: Revision) -> Result<Plan, Refused> {
        if txn.steps.len() > self.limits.steps {
            return Err(Refused::Full { limit: "ops", max: self.limits.steps });
        }
        let mut plan = Plan { changes: Vec::new(), outcomes: Vec::with_capacity(txn.steps.len()) };
        let mut seen = HashSet::with_capacity(txn.steps.len());
        for (at, step) in txn.steps.iter().enumerate() {
            let key = step.op.key();
            let refuse = |reason| Refused::Step { step: at, key: key.clone(), reason };
            if !seen.insert(key) {
                return Err(refuse(Reason::Twice));
            }
            let old = state.get(key);
            step.precondition.check(old.map(|old| &**old)).map_err(refuse)?;
            let seq = u32::try_from(plan.changes.len()).expect("steps are limited");
            let slot = Slot { revision, seq };
            let decision = match &step.op {
                Op::Upsert(draft) => self.upsert(state, txn, step, draft, old, slot),
                Op::Delete(_) => delete(txn, step, old, slot),
                Op::Status(draft) => self.set_status(draft, old, slot),
            };
            let (change, outcome) = decision.map_err(refuse)?;
            plan.changes.extend(change);
            plan.outcomes.push(outcome);
        }
        self.check_cycles(state, txn, &plan)?;
        self.check_totals(state, &plan)?;
        Ok(plan)
    }

    /// Makes the changes of a plan.
    pub(crate) fn perform(&mut self, state: &mut State, plan: Plan, revision: Revision) -> Vec<Touched> {
        state.head = revision;
        let mut touched = Vec::new();
        for change in plan.changes {
            self.change(state, &change, &mut touched);
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
        while let Some(oldest) = self.burials.pop_front_if(|burial| burial.slot.revision <= revision) {
            self.forget(state, &oldest);
        }
        state.horizon = state.horizon.max(revision.min(state.head));
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
    pub(crate) fn install(&mut self, state: &mut State, kind: &Kind, filter: &Arc<Filter>, view: View) {
        let opened: Vec<_> = view.selectors().cloned().collect();
        let of = self.kind(state, kind);
        of.index.insert(filter);
        view.iter(None).for_each(|record| of.hold(record.key(), filter));
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

    /// Drops the views of filters that have been idle for longest.
    pub(crate) fn retire(&mut self, state: &mut State) {
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
            let unused: Vec<Kind> = match kind {
                Some(kind) => vec![kind],
                None => state.kinds.keys().cloned().collect(),
            };
            for kind in unused.iter().filter(|kind| !used(kind)) {
                let Some(of) = state.kinds.get_mut(kind) else { continue };
                let of = Arc::make_mut(of);
                let Some(view) = of.filtered.remove(&filter) else { continue };
                of.index.remove(&filter);
                view.iter(None).for_each(|record| of.let_go(record.key(), &filter));
                view.selectors().for_each(|selector| state.selectors.remove(selector));
            }
        }
    }

    fn change(&mut self, state: &mut State, change: &Change, touched: &mut Vec<Touched>) {
        let Change { key, old, new, slot } = change;
        let fields = self.fields.clone();
        let kind = self.kind(state, key.kind());

        // Those that hold it, whatever their filter would say of it today, and those that may want it.
        let mut candidates: BTreeSet<_> = kind.holders.get(key).map(|holders| (**holders).clone()).unwrap_or_default();
        if let Some(new) = new {
            kind.index.candidates(new, &*fields, &mut candidates);
        }
        let mut all_effects = vec![(None, kind.all.set(key, new.as_ref(), *slot, false))];
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
        if !lanes.is_empty() {
            self.graves += lanes.len();
            self.burials.push_back(Burial { key: key.clone(), slot: *slot, lanes });
        }
        let size = |record: &Option<Arc<Record>>| record.as_ref().map_or(0, |record| record.size() as u64);
        state.objects = state.objects + usize::from(new.is_some()) - usize::from(old.is_some());
        state.bytes = state.bytes + size(new) - size(old);
    }

    fn forget(&mut self, state: &mut State, burial: &Burial) {
        state.horizon = state.horizon.max(burial.slot.revision);
        self.graves -= burial.lanes.len();
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

    fn upsert(
        &self,
        state: &State,
        txn: &Txn,
        step: &Step,
        draft: &Draft,
        old: Option<&Arc<Record>>,
        slot: Slot,
    ) -> Result<(Option<Change>, Outcome), Reason> {
        self.check_draft(draft)?;
        let before = old.map(|old| old.content());
        let uid = draft.uid.clone().or_else(|| before.as_ref().map(|before| before.uid.clone()));
        let uid = uid.unwrap_or_else(|| derive_uid(state, &draft.key));
        let same_life = before.as_ref().filter(|before| before.uid == uid);
        let content = Content {
            key: draft.key.clone(),
            uid,
            generation: next_generation(draft, same_life)?,
            labels: draft.labels.clone(),
            refs: draft.refs.clone(),
            owner: draft.owner.clone(),
            manager: txn.publisher.clone(),
            audience: draft.audience.clone(),
            spec: draft.spec.clone(),
            status: same_life.map_or_else(Bytes::new, |before| before.status.clone()),
            observed: same_life.map_or(Generation(0), |before| before.observed),
        };
        let Some((old, before)) = old.zip(before.as_ref()) else {
            return self.put(None, content, slot, Effect::Created);
        };
        let foreign = before.manager != txn.publisher && !step.take_over;
        let same = Content { manager: before.manager.clone(), ..content.clone() } == *before;
        if same && (foreign || before.manager == content.manager) {
            return Ok((None, Outcome::of(old, Effect::Unchanged)));
        }
        if foreign {
            return Err(Reason::Foreign(before.manager.clone()));
        }
        let effect = if same_life.is_some() { Effect::Updated } else { Effect::Created };
        self.put(Some(old), content, slot, effect)
    }

    fn set_status(
        &self,
        draft: &StatusDraft,
        old: Option<&Arc<Record>>,
        slot: Slot,
    ) -> Result<(Option<Change>, Outcome), Reason> {
        let old = old.ok_or(Reason::NoSuchObject)?;
        let before = old.content();
        if draft.observed > before.generation {
            return Err(Reason::ObservedAhead { observed: draft.observed, current: before.generation });
        }
        if before.status == draft.status && before.observed == draft.observed {
            return Ok((None, Outcome::of(old, Effect::Unchanged)));
        }
        let content = Content { status: draft.status.clone(), observed: draft.observed, ..before };
        self.put(Some(old), content, slot, Effect::Updated)
    }

    fn put(
        &self,
        old: Option<&Arc<Record>>,
        content: Content,
        slot: Slot,
        effect: Effect,
    ) -> Result<(Option<Change>, Outcome), Reason> {
        let new = Arc::new(Record::new(content, slot));
        at_most("object_bytes", new.size(), self.limits.object_bytes)?;
        let outcome = Outcome::of(&new, effect);
        Ok((Some(Change { key: new.key().clone(), old: old.cloned(), new: Some(new), slot }), outcome))
    }

    fn check_draft(&self, draft: &Draft) -> Result<(), Reason> {
        at_most("labels", draft.labels.len(), self.limits.labels)?;
        at_most("refs", draft.refs.len(), self.limits.refs)?;
        if let nimbus_core::Audience::Agents(ids) = &draft.audience {
            at_most("named_agents", ids.len(), self.limits.named_agents)?;
        }
        Ok(())
    }

    fn check_cycles(&self, state: &State, txn: &Txn, plan: &Plan) -> Result<(), Refused> {
        // Without a new reference there is no new cycle.
        let gains = |change: &&Change| {
            let new = change.new.iter().flat_map(|new| new.needs());
            let old: HashSet<_> = change.old.iter().flat_map(|old| old.needs()).collect();
            new.into_iter().any(|to| !old.contains(to))
        };
        let suspects: Vec<_> = plan.changes.iter().filter(gains).map(|change| &change.key).collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let overlay: HashMap<_, _> = plan.changes.iter().map(|change| (&change.key, change.new.as_ref())).collect();
        let find = |key: &ObjectKey| match overlay.get(key) {
            Some(new) => *new,
            None => state.get(key),
        };
        let Some(cycle) = refs::find_cycle(suspects.into_iter(), find) else { return Ok(()) };
        let in_cycle = |step: &Step| cycle.contains(step.op.key());
        let step = txn.steps.iter().position(in_cycle).unwrap_or_default();
        let key = txn.steps.get(step).map_or_else(|| cycle[0].clone(), |step| step.op.key().clone());
        Err(Refused::Step { step, key, reason: Reason::Cycle(cycle) })
    }

    fn check_totals(&self, state: &State, plan: &Plan) -> Result<(), Refused> {
        let born = plan.changes.iter().filter(|change| change.old.is_none()).count();
        let died = plan.changes.iter().filter(|change| change.new.is_none()).count();
        if born > died && state.objects + born - died > self.limits.objects {
            return Err(Refused::Full { limit: "objects", max: self.limits.objects });
        }
        let size = |record: &Option<Arc<Record>>| record.as_ref().map_or(0, |record| record.size() as u64);
        let (more, less) = plan
            .changes
            .iter()
            .fold((0, 0), |(more, less), change| (more + size(&change.new), less + size(&change.old)));
        if more > less && state.bytes + more - less > self.limits.bytes {
            return Err(Refused::Full {
                limit: "bytes",
                max: usize::try_from(self.limits.bytes).unwrap_or(usize::MAX),
            });
        }
        let kinds: HashSet<_> = plan.changes.iter().map(|change| change.key.kind()).collect();
        let new_kinds = kinds.into_iter().filter(|kind| !state.kinds.contains_key(*kind)).count();
        self.check_kinds(state, new_kinds)
    }

    pub(crate) fn check_kinds(&self, state: &State, new_kinds: usize) -> Result<(), Refused> {
        if new_kinds > 0 && state.kinds.len() + new_kinds > self.limits.kinds {
            return Err(Refused::Full { limit: "kinds", max: self.limits.kinds });
        }
        Ok(())
    }
}

// === impl Precondition ===

impl Precondition {
    fn check(&self, old: Option<&Record>) -> Result<(), Reason> {
        let fail = |field, expected: String, found: Option<String>| {
            let found = found.unwrap_or_else(|| "no object".to_owned());
            Err(Reason::Precondition { field, expected, found })
        };
        if self.absent && old.is_some() {
            return fail("object", "absent".to_owned(), Some("present".to_owned()));
        }
        if let Some(uid) = &self.uid
            && old.map(Record::uid) != Some(uid)
        {
            return fail("uid", uid.to_string(), old.map(|old| old.uid().to_string()));
        }
        if let Some(revision) = self.revision
            && old.map(Record::revision) != Some(revision)
        {
            return fail("revision", revision.to_string(), old.map(|old| old.revision().to_string()));
        }
        if let Some(generation) = self.generation
            && old.map(Record::generation) != Some(generation)
        {
            return fail("generation", generation.to_string(), old.map(|old| old.generation().to_string()));
        }
        Ok(())
    }
}

// === impl Outcome ===

impl Outcome {
    fn of(record: &Record, effect: Effect) -> Self {
        let (uid, generation, revision) = (record.uid().clone(), record.generation(), record.revision());
        Self { effect, uid: Some(uid), generation, revision }
    }
}

fn delete(txn: &Txn, step: &Step, old: Option<&Arc<Record>>, slot: Slot) -> Result<(Option<Change>, Outcome), Reason> {
    let Some(old) = old else {
        let revision = Revision::ZERO;
        return Ok((None, Outcome { effect: Effect::Absent, uid: None, generation: Generation(0), revision }));
    };
    if *old.manager() != txn.publisher && !step.take_over {
        return Err(Reason::Foreign(old.manager().clone()));
    }
    let outcome = Outcome { revision: slot.revision, ..Outcome::of(old, Effect::Deleted) };
    Ok((Some(Change { key: old.key().clone(), old: Some(old.clone()), new: None, slot }), outcome))
}

/// The generation of a spec: the publisher's, if it says one, else one more than before whenever the spec differs.
fn next_generation(draft: &Draft, before: Option<&Content>) -> Result<Generation, Reason> {
    let Some(before) = before else {
        return Ok(draft.generation.unwrap_or(Generation(1)));
    };
    let (current, differs) = (before.generation, before.spec != draft.spec);
    match draft.generation {
        None if differs => current.0.checked_add(1).map(Generation).ok_or(Reason::SameGeneration(current)),
        None => Ok(current),
        Some(given) if given < current => Err(Reason::StaleGeneration { given, current }),
        Some(given) if given == current && differs => Err(Reason::SameGeneration(given)),
        Some(given) => Ok(given),
    }
}

/// A uid for a publisher that gives none: the same after a restart of the bus, another one after a delete.
fn derive_uid(state: &State, key: &ObjectKey) -> Uid {
    let before = state.kind(key.kind()).and_then(|kind| kind.all.last_uid(key));
    let mut hasher = LeafHasher::new(key);
    hasher.part(before.as_ref().map_or("", |uid| uid.as_str()).as_bytes());
    Uid::new(&hasher.finish().to_string()).expect("hex digits are a name")
}

fn at_most(limit: &'static str, size: usize, max: usize) -> Result<(), Reason> {
    if size > max { Err(Reason::TooLarge { limit, size, max }) } else { Ok(()) }
}

/// A transaction that deletes, for sweeping.
pub(crate) fn deletes(publisher: PublisherId, fence: u64, keys: Vec<ObjectKey>) -> Txn {
    Txn { publisher, fence, steps: keys.into_iter().map(|key| Op::Delete(key).into()).collect() }
}
