//! What a transaction would do, or why it must not: decided as a whole, before anything changes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use nimbus_core::{
    Audience, Finalizers, Generation, KeyHashes, Kind, LeafHasher, ObjectKey, Revision, Uid,
    planted::{self, Bug},
};

use crate::{
    limits::Limits,
    record::{Content, Decision, Record, Slot},
    refs,
    state::{KindState, State},
    txn::{Draft, Effect, FinalizersDraft, Op, Outcome, Precondition, Reason, Refused, StatusDraft, Step, Txn},
};

/// A change of one object that will happen.
pub(crate) struct Change<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) old: Option<Arc<Record>>,
    pub(crate) new: Option<Arc<Record>>,
    pub(crate) slot: Slot,
    /// Bytes of the old one, and of the new one.
    pub(crate) sizes: (u64, u64),
}

/// A transaction that can happen.
pub(crate) struct Plan<'a> {
    pub(crate) changes: Vec<Change<'a>>,
    pub(crate) outcomes: Vec<Outcome>,
}

/// Decides what a transaction would do to a state.
struct Planner<'s, 'a> {
    limits: &'s Limits,
    state: &'s State,
    txn: &'a Txn,
}

/// What a step comes to: a change, unless there is none to make.
type Decided<'a> = (Option<Change<'a>>, Outcome);

// === impl Change ===

impl<'a> Change<'a> {
    fn new(key: &'a ObjectKey, old: Option<&Arc<Record>>, new: Option<Arc<Record>>, slot: Slot) -> Self {
        let size = |record: Option<&Arc<Record>>| record.map_or(0, |record| record.size() as u64);
        let sizes = (size(old), size(new.as_ref()));
        Self { key, old: old.cloned(), new, slot, sizes }
    }

    /// Whether it is a new object, for everyone.
    pub(crate) fn is_birth(&self) -> bool {
        let everyone = |new: &Arc<Record>| *new.audience() == Audience::Everyone;
        self.old.is_none() && self.new.as_ref().is_some_and(everyone)
    }

    /// Whether a delete begins, or somebody who had to be waited for is done. There is always room for that.
    fn leads_to_the_end(&self) -> bool {
        let (Some(old), Some(new)) = (&self.old, &self.new) else { return false };
        old.is_deleting() != new.is_deleting() || new.finalizers().len() < old.finalizers().len()
    }
}

// === impl Plan ===

impl<'a> Plan<'a> {
    /// Decides what a transaction would do at `revision`, or why it must not.
    pub(crate) fn new(limits: &Limits, state: &State, txn: &'a Txn, revision: Revision) -> Result<Self, Refused> {
        let planner = Planner { limits, state, txn };
        if txn.steps.len() > limits.steps {
            return Err(Refused::Full { limit: "ops", max: limits.steps });
        }
        let room = txn.steps.len();
        let mut plan = Self { changes: Vec::with_capacity(room), outcomes: Vec::with_capacity(room) };
        let mut seen: HashSet<_, KeyHashes> = HashSet::with_capacity_and_hasher(room, KeyHashes::default());
        // Most transactions are about one kind.
        let mut last: Option<(&Kind, Option<&KindState>)> = None;
        for (at, step) in txn.steps.iter().enumerate() {
            let key = step.op.key();
            let refuse = |reason| Refused::Step { step: at, key: key.clone(), reason };
            if !seen.insert(key) {
                return Err(refuse(Reason::Twice));
            }
            let kind = match last {
                Some((kind, of)) if kind == key.kind() => of,
                _ => last.insert((key.kind(), state.kind(key.kind()))).1,
            };
            let old = kind.and_then(|kind| kind.all().get(key));
            step.precondition.check(old.map(|old| &**old)).map_err(refuse)?;
            let seq = u32::try_from(plan.changes.len()).expect("steps are limited");
            let slot = Slot { revision, seq };
            let decision = match &step.op {
                Op::Upsert(draft) => planner.upsert(step, draft, old, slot),
                Op::Delete(_) => planner.delete(step, old, slot),
                Op::Status(draft) => planner.set_status(draft, old, slot),
                Op::Finalizers(draft) => planner.set_finalizers(draft, old, slot),
            };
            let (change, outcome) = decision.map_err(refuse)?;
            plan.changes.extend(change);
            plan.outcomes.push(outcome);
        }
        planner.check_cycles(&plan)?;
        planner.check_totals(&plan)?;
        Ok(plan)
    }
}

// === impl Planner ===

impl<'a> Planner<'_, 'a> {
    fn upsert(
        &self,
        step: &Step,
        draft: &'a Draft,
        old: Option<&Arc<Record>>,
        slot: Slot,
    ) -> Result<Decided<'a>, Reason> {
        self.check_draft(draft)?;
        let uid = draft.uid.clone().or_else(|| old.map(|old| old.to_uid()));
        let uid = uid.unwrap_or_else(|| derive_uid(self.state, &draft.key));
        let same_life = old.filter(|old| draft.uid.is_none() || old.has_uid(&uid));
        let foreign = old
            .filter(|old| *old.manager() != self.txn.publisher && !step.take_over)
            .map(|old| Reason::Foreign(old.manager().clone()));
        // Whose it is comes first: no other generation would make it theirs.
        let generation = next_generation(draft, same_life).map_err(|reason| foreign.clone().unwrap_or(reason))?;
        let finalizers = old.map_or_else(Finalizers::default, |old| old.finalizers());
        let decision = Decision {
            key: &draft.key,
            uid: &uid,
            generation,
            labels: &draft.labels,
            refs: &draft.refs,
            owner: draft.owner.as_ref(),
            manager: &self.txn.publisher,
            annotations: &draft.annotations,
            finalizers: &finalizers,
            deleting: old.is_some_and(|old| old.is_deleting()),
            audience: &draft.audience,
            spec: &draft.spec,
            status: same_life.map_or(&[], |old| old.status_bytes()),
            observed: same_life.map_or(Generation(0), |old| old.observed()),
        };
        let put = |effect| self.put(&draft.key, old, decision, slot, effect);
        let Some(old) = old else { return put(Effect::Created) };
        let same = old.is(decision) && !planted::is(Bug::CountUnchanged);
        if same && (foreign.is_some() || *old.manager() == self.txn.publisher) {
            return Ok((None, Outcome::of(old, Effect::Unchanged)));
        }
        if let Some(foreign) = foreign {
            return Err(foreign);
        }
        if old.is_deleting() {
            return Err(Reason::Deleting(finalizers));
        }
        if same_life.is_none() && !finalizers.is_empty() {
            return Err(Reason::Unfinished(finalizers));
        }
        put(if same_life.is_some() { Effect::Updated } else { Effect::Created })
    }

    fn set_status(&self, draft: &'a StatusDraft, old: Option<&Arc<Record>>, slot: Slot) -> Result<Decided<'a>, Reason> {
        let old = old.ok_or(Reason::NoSuchObject)?;
        let current = old.generation();
        if draft.observed > current {
            return Err(Reason::ObservedAhead { observed: draft.observed, current });
        }
        if old.status_bytes() == draft.status && old.observed() == draft.observed {
            return Ok((None, Outcome::of(old, Effect::Unchanged)));
        }
        let content = Content { status: draft.status.clone(), observed: draft.observed, ..old.content() };
        self.put(&draft.key, Some(old), (&content).into(), slot, Effect::Updated)
    }

    fn set_finalizers(
        &self,
        draft: &'a FinalizersDraft,
        old: Option<&Arc<Record>>,
        slot: Slot,
    ) -> Result<Decided<'a>, Reason> {
        let old = old.ok_or(Reason::NoSuchObject)?;
        let before = old.finalizers();
        let finalizers = before.edited(&draft.add, &draft.remove);
        if finalizers == before {
            return Ok((None, Outcome::of(old, Effect::Unchanged)));
        }
        if old.is_deleting() && finalizers.iter().any(|name| !before.contains(name)) {
            return Err(Reason::Deleting(before));
        }
        if old.is_deleting() && finalizers.is_empty() {
            return Ok(end(&draft.key, old, slot));
        }
        let gains = finalizers.len() > before.len();
        let content = Content { finalizers, ..old.content() };
        if gains {
            at_most("finalizers", content.finalizers.len(), self.limits.finalizers)?;
            return self.put(&draft.key, Some(old), (&content).into(), slot, Effect::Updated);
        }
        // Whatever the limits are by now, what is done can be said.
        Ok(replace(&draft.key, Some(old), (&content).into(), slot, Effect::Updated))
    }

    fn put(
        &self,
        key: &'a ObjectKey,
        old: Option<&Arc<Record>>,
        decision: Decision<'_>,
        slot: Slot,
        effect: Effect,
    ) -> Result<Decided<'a>, Reason> {
        let (change, outcome) = replace(key, old, decision, slot, effect);
        if let Some(change) = &change {
            at_most("object_bytes", change.sizes.1 as usize, self.limits.object_bytes)?;
        }
        Ok((change, outcome))
    }

    fn check_draft(&self, draft: &Draft) -> Result<(), Reason> {
        at_most("labels", draft.labels.len(), self.limits.labels)?;
        at_most("refs", draft.refs.len(), self.limits.refs)?;
        if let Audience::Agents(ids) = &draft.audience {
            at_most("named_agents", ids.len(), self.limits.named_agents)?;
        }
        Ok(())
    }

    fn check_cycles(&self, plan: &Plan<'_>) -> Result<(), Refused> {
        // Without a new reference there is no new cycle.
        let gains = |change: &&Change<'_>| {
            let Some(new) = change.new.as_ref().filter(|new| !new.refs().is_empty()) else { return false };
            let old: HashSet<_> = change.old.iter().flat_map(|old| old.needs()).collect();
            new.needs().any(|to| !old.contains(to))
        };
        let suspects: Vec<_> = plan.changes.iter().filter(gains).map(|change| change.key).collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let overlay: HashMap<_, _> = plan.changes.iter().map(|change| (change.key, change.new.as_ref())).collect();
        let find = |key: &ObjectKey| match overlay.get(key) {
            Some(new) => *new,
            None => self.state.get(key),
        };
        let Some(cycle) = refs::find_cycle(suspects.into_iter(), find) else { return Ok(()) };
        let in_cycle = |step: &Step| cycle.contains(step.op.key());
        let step = self.txn.steps.iter().position(in_cycle).unwrap_or_default();
        let key = self.txn.steps.get(step).map_or_else(|| cycle[0].clone(), |step| step.op.key().clone());
        Err(Refused::Step { step, key, reason: Reason::Cycle(cycle) })
    }

    fn check_totals(&self, plan: &Plan<'_>) -> Result<(), Refused> {
        let born = plan.changes.iter().filter(|change| change.old.is_none()).count();
        let died = plan.changes.iter().filter(|change| change.new.is_none()).count();
        if born > died && self.state.objects + born - died > self.limits.objects {
            return Err(Refused::Full { limit: "objects", max: self.limits.objects });
        }
        let (more, less) = plan
            .changes
            .iter()
            .filter(|change| !change.leads_to_the_end())
            .fold((0, 0), |(more, less), change| (more + change.sizes.1, less + change.sizes.0));
        if more > less && self.state.bytes + more - less > self.limits.bytes {
            return Err(Refused::Full {
                limit: "bytes",
                max: usize::try_from(self.limits.bytes).unwrap_or(usize::MAX),
            });
        }
        let runs = plan.changes.chunk_by(|one, next| one.key.kind() == next.key.kind());
        let kinds: HashSet<_> = runs.map(|run| run[0].key.kind()).collect();
        let new_kinds = kinds.into_iter().filter(|kind| !self.state.kinds.contains_key(*kind)).count();
        check_kinds(self.limits, self.state, new_kinds)
    }

    fn delete(&self, step: &'a Step, old: Option<&Arc<Record>>, slot: Slot) -> Result<Decided<'a>, Reason> {
        let Some(old) = old else {
            let revision = Revision::ZERO;
            return Ok((None, Outcome { effect: Effect::Absent, uid: None, generation: Generation(0), revision }));
        };
        if *old.manager() != self.txn.publisher && !step.take_over {
            return Err(Reason::Foreign(old.manager().clone()));
        }
        if old.finalizers().is_empty() {
            return Ok(end(step.op.key(), old, slot));
        }
        if old.is_deleting() {
            return Ok((None, Outcome::of(old, Effect::Deleting)));
        }
        // The mark is a few bytes more, and a delete is not refused for want of room.
        let content = Content { deleting: true, ..old.content() };
        Ok(replace(step.op.key(), Some(old), (&content).into(), slot, Effect::Deleting))
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
            && !old.is_some_and(|old| old.has_uid(uid))
        {
            return fail("uid", uid.to_string(), old.map(|old| old.to_uid().to_string()));
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
        let (uid, generation, revision) = (record.to_uid(), record.generation(), record.revision());
        Self { effect, uid: Some(uid), generation, revision }
    }
}

/// The object is new or different.
fn replace<'a>(
    key: &'a ObjectKey,
    old: Option<&Arc<Record>>,
    decision: Decision<'_>,
    slot: Slot,
    effect: Effect,
) -> Decided<'a> {
    let (uid, generation, revision) = (Some(decision.uid.clone()), decision.generation, slot.revision);
    let new = Arc::new(Record::kept(decision, slot));
    (Some(Change::new(key, old, Some(new), slot)), Outcome { effect, uid, generation, revision })
}

/// The object of that name goes.
fn end<'a>(key: &'a ObjectKey, old: &Arc<Record>, slot: Slot) -> Decided<'a> {
    let outcome = Outcome { revision: slot.revision, ..Outcome::of(old, Effect::Deleted) };
    (Some(Change::new(key, Some(old), None, slot)), outcome)
}

/// The generation of a spec: the publisher's, if it says one, else one more than before whenever the spec differs.
fn next_generation(draft: &Draft, before: Option<&Arc<Record>>) -> Result<Generation, Reason> {
    let Some(before) = before else {
        return Ok(draft.generation.unwrap_or(Generation(1)));
    };
    let (current, differs) = (before.generation(), !before.has_spec(&draft.spec));
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

/// There is room for so many new kinds.
pub(crate) fn check_kinds(limits: &Limits, state: &State, new_kinds: usize) -> Result<(), Refused> {
    if new_kinds > 0 && state.kinds.len() + new_kinds > limits.kinds {
        return Err(Refused::Full { limit: "kinds", max: limits.kinds });
    }
    Ok(())
}
