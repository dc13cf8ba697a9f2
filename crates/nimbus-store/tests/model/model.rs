//! The naive model: every committed state is kept whole, and every question is answered by scanning.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use nimbus_core::{
    AgentId, Annotations, Audience, Finalizers, Kind, Labels, ObjectKey, PublisherId, Reference, Revision, Selector,
    Uid,
};
use nimbus_store::{
    Draft, Effect, Filter, FinalizersDraft, Op, Origin, Outcome, Precondition, Reason, Refused, StatusDraft, Step,
    SyncId, Txn,
};
use nimbus_wire::v1;
use prost::Message as _;

use crate::reader::hit;

/// An object at one revision.
#[derive(Debug, Clone)]
pub(crate) struct Obj {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) generation: u64,
    pub(crate) revision: u64,
    /// When something that agents see last changed.
    pub(crate) content_revision: u64,
    pub(crate) labels: Labels,
    pub(crate) refs: Arc<[Reference]>,
    pub(crate) manager: PublisherId,
    pub(crate) annotations: Annotations,
    pub(crate) finalizers: Finalizers,
    pub(crate) deleting: bool,
    pub(crate) audience: Audience,
    pub(crate) spec: Bytes,
    pub(crate) status: Bytes,
    pub(crate) observed: u64,
    /// What observers are sent, but for the revision.
    pub(crate) full: v1::Object,
    /// What agents are sent, but for the revision.
    pub(crate) plain: v1::Object,
}

/// All objects at one revision.
pub(crate) type State = BTreeMap<ObjectKey, Arc<Obj>>;

/// One epoch of a collection.
#[derive(Debug)]
pub(crate) struct Model {
    /// States in the order of their revisions; a revision that is not here is that of the state before it.
    pub(crate) history: Vec<(u64, State)>,
    pub(crate) assume_complete: bool,
    pub(crate) durable: bool,
    pub(crate) trimmed: u64,
    fences: BTreeMap<PublisherId, u64>,
    pub(crate) open: BTreeMap<PublisherId, OpenSync>,
    /// Publishers that announced a kind, and whether they finished.
    announced: BTreeMap<Kind, BTreeMap<PublisherId, bool>>,
    synced: BTreeSet<PublisherId>,
    /// The last life of every name that ever was, and when it ended.
    ended: BTreeMap<ObjectKey, (Uid, u64)>,
}

#[derive(Debug)]
pub(crate) struct OpenSync {
    pub(crate) id: SyncId,
    pub(crate) fence: u64,
    pub(crate) kinds: BTreeSet<Kind>,
    pub(crate) named: BTreeSet<ObjectKey>,
}

/// What a reader asks for, as plain values.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) kinds: Option<BTreeSet<Kind>>,
    pub(crate) filter: FilterSpec,
    /// That of the filter, parsed.
    pub(crate) selector: Selector,
    /// An agent and its labels; `None` is an observer.
    pub(crate) agent: Option<(AgentId, Labels)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FilterSpec {
    pub(crate) namespaces: Vec<&'static str>,
    pub(crate) names: Vec<&'static str>,
    pub(crate) selector: &'static str,
    /// On the first byte of the spec: equal or not, to this.
    pub(crate) first: Option<(bool, u8)>,
}

/// What the model expects of a transaction that happens.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) changed: bool,
    pub(crate) outcomes: Vec<Outcome>,
}

// === impl Obj ===

impl Obj {
    fn new(draft: &Draft, uid: Uid, generation: u64, revision: u64, manager: &PublisherId) -> Self {
        Self {
            key: draft.key.clone(),
            uid,
            generation,
            revision,
            content_revision: revision,
            labels: draft.labels.clone(),
            refs: draft.refs.clone(),
            manager: manager.clone(),
            annotations: draft.annotations.clone(),
            finalizers: Finalizers::default(),
            deleting: false,
            audience: draft.audience.clone(),
            spec: draft.spec.clone(),
            status: Bytes::new(),
            observed: 0,
            full: v1::Object::default(),
            plain: v1::Object::default(),
        }
    }

    fn sealed(mut self) -> Arc<Self> {
        self.plain = v1::Object {
            kind: self.key.kind().to_string(),
            namespace: self.key.namespace().to_owned(),
            name: self.key.name().to_owned(),
            uid: self.uid.to_string(),
            generation: self.generation,
            revision: 0,
            labels: self.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            refs: self.refs.iter().map(wire_reference).collect(),
            owner: None,
            manager: self.manager.to_string(),
            spec: any(&self.spec),
            status: any(&self.status),
            observed_generation: self.observed,
            audience: None,
            annotations: self.annotations.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            finalizers: self.finalizers.iter().map(str::to_owned).collect(),
            deleting: self.deleting,
        };
        let to = match &self.audience {
            Audience::Everyone => None,
            Audience::Selector(selector) => Some(v1::audience::To::Selector(selector.to_string())),
            Audience::Agents(ids) => {
                Some(v1::audience::To::Agents(v1::Agents { ids: ids.iter().map(ToString::to_string).collect() }))
            }
            _ => unreachable!("all audiences are known"),
        };
        self.full = v1::Object { audience: to.map(|to| v1::Audience { to: Some(to) }), ..self.plain.clone() };
        Arc::new(self)
    }

    /// A draft that asks for exactly this object.
    pub(crate) fn draft(&self) -> Draft {
        Draft {
            key: self.key.clone(),
            uid: Some(self.uid.clone()),
            generation: Some(nimbus_core::Generation(self.generation)),
            labels: self.labels.clone(),
            refs: self.refs.clone(),
            owner: None,
            annotations: self.annotations.clone(),
            audience: self.audience.clone(),
            spec: self.spec.clone(),
        }
    }

    /// The same object, of which a delete was asked for.
    fn marked(&self, revision: u64) -> Arc<Self> {
        hit("marked");
        Self { deleting: true, revision, content_revision: revision, ..self.clone() }.sealed()
    }

    pub(crate) fn needs(&self) -> impl Iterator<Item = &ObjectKey> {
        self.refs.iter().filter(|reference| !reference.weak).map(|reference| &reference.to)
    }

    fn outcome(&self, effect: Effect) -> Outcome {
        Outcome {
            effect,
            uid: Some(self.uid.clone()),
            generation: nimbus_core::Generation(self.generation),
            revision: Revision(self.revision),
        }
    }
}

fn wire_reference(reference: &Reference) -> v1::Reference {
    v1::Reference {
        kind: reference.to.kind().to_string(),
        namespace: reference.to.namespace().to_owned(),
        name: reference.to.name().to_owned(),
        weak: reference.weak,
        declared: reference.declared,
    }
}

fn any(bytes: &Bytes) -> Option<prost_types::Any> {
    (!bytes.is_empty()).then(|| prost_types::Any::decode(bytes.clone()).unwrap())
}

/// The first byte inside an encoded `Any`.
pub(crate) fn first_byte(spec: &[u8]) -> Option<u8> {
    prost_types::Any::decode(spec).ok()?.value.first().copied()
}

// === impl Scope ===

impl Scope {
    pub(crate) fn sees(&self, object: &Obj) -> bool {
        let kinds = self.kinds.as_ref().is_none_or(|kinds| kinds.contains(object.key.kind()));
        let audience = self.agent.as_ref().is_none_or(|(id, labels)| match &object.audience {
            Audience::Everyone => true,
            Audience::Selector(selector) => selector.matches(labels),
            Audience::Agents(ids) => ids.contains(id),
            _ => unreachable!("all audiences are known"),
        });
        kinds && audience && self.selector.matches(&object.labels) && self.filter.passes(object)
    }

    pub(crate) fn to_store(&self) -> nimbus_store::Scope {
        nimbus_store::Scope {
            kinds: self.kinds.clone().map(Arc::new),
            filter: Filter::compile(Some(&self.filter.to_wire())).unwrap().map(Arc::new),
            viewer: match &self.agent {
                None => nimbus_store::Viewer::Observer,
                Some((id, labels)) => nimbus_store::Viewer::Agent { id: id.clone(), labels: labels.clone() },
            },
        }
    }

    pub(crate) fn is_observer(&self) -> bool {
        self.agent.is_none()
    }
}

// === impl FilterSpec ===

impl FilterSpec {
    /// Names and fields; the scope asks the selector.
    fn passes(&self, object: &Obj) -> bool {
        (self.namespaces.is_empty() || self.namespaces.contains(&object.key.namespace()))
            && (self.names.is_empty() || self.names.contains(&object.key.name()))
            && self.first.is_none_or(|(equal, byte)| (first_byte(&object.spec) == Some(byte)) == equal)
    }

    fn to_wire(&self) -> v1::Filter {
        let test = |(equal, byte): (bool, u8)| format!("spec.first{}{byte}", if equal { "=" } else { "!=" });
        v1::Filter {
            namespaces: self.namespaces.iter().map(ToString::to_string).collect(),
            names: self.names.iter().map(ToString::to_string).collect(),
            selector: self.selector.to_owned(),
            fields: self.first.map(test).into_iter().collect(),
        }
    }
}

// === impl Model ===

impl Model {
    pub(crate) fn new(assume_complete: bool, durable: bool) -> Self {
        Self {
            history: vec![(0, State::new())],
            assume_complete,
            durable,
            trimmed: 0,
            fences: BTreeMap::new(),
            open: BTreeMap::new(),
            announced: BTreeMap::new(),
            synced: BTreeSet::new(),
            ended: BTreeMap::new(),
        }
    }

    pub(crate) fn head(&self) -> u64 {
        self.history.last().unwrap().0
    }

    pub(crate) fn now(&self) -> &State {
        &self.history.last().unwrap().1
    }

    /// Everything at a revision, or at the one before it if there is none.
    pub(crate) fn at(&self, revision: u64) -> &State {
        let after = self.history.partition_point(|(at, _)| *at <= revision);
        &self.history[after - 1].1
    }

    /// What a reader of that scope should hold at a revision.
    pub(crate) fn visible(&self, scope: &Scope, revision: u64) -> BTreeMap<&ObjectKey, &Arc<Obj>> {
        self.at(revision).iter().filter(|(_, object)| scope.sees(object)).collect()
    }

    /// Whether a publisher that the reader depends on, or a kind, is not there yet.
    pub(crate) fn is_settled(&self, scope: &Scope, origins: &[Origin]) -> bool {
        if self.assume_complete {
            return true;
        }
        let written = self.history.iter().flat_map(|(_, state)| state.keys().map(|key| key.kind().clone()));
        let written: BTreeSet<Kind> = written.collect();
        let known: BTreeSet<Kind> = match &scope.kinds {
            Some(kinds) => kinds.clone(),
            None => self.announced.keys().cloned().chain(written.iter().cloned()).collect(),
        };
        let complete = |kind: &Kind| match self.announced.get(kind) {
            Some(all) => all.values().all(|finished| *finished),
            None => self.durable && written.contains(kind),
        };
        let synced =
            |origin: &Origin| self.announced.get(&origin.kind).and_then(|all| all.get(&origin.manager)) == Some(&true);
        (scope.kinds.is_some() || !known.is_empty()) && known.iter().all(complete) && origins.iter().all(synced)
    }

    pub(crate) fn fence(&self, publisher: &PublisherId) -> u64 {
        self.fences.get(publisher).copied().unwrap_or_default()
    }

    /// What a transaction should do. `given` is what the store answered: uids that it may choose are taken from there.
    pub(crate) fn commit(
        &mut self,
        txn: &Txn,
        at: Option<u64>,
        given: Option<&[Outcome]>,
    ) -> Result<Applied, &'static str> {
        let (head, revision) = (self.head(), at.unwrap_or(self.head() + 1));
        if txn.fence < self.fence(&txn.publisher) {
            return Err("fenced");
        }
        if revision <= head {
            return Err("not ahead");
        }
        let old = self.now().clone();
        let mut new = old.clone();
        let (mut seen, mut outcomes, mut changed) = (BTreeSet::new(), Vec::new(), false);
        for (at, step) in txn.steps.iter().enumerate() {
            let key = step.op.key();
            if !seen.insert(key.clone()) {
                return Err("twice");
            }
            let before = old.get(key);
            if !holds(&step.precondition, before.map(|before| &**before)) {
                return Err("precondition");
            }
            let chosen = given.and_then(|given| given.get(at)).and_then(|outcome| outcome.uid.clone());
            let (after, outcome) = match &step.op {
                Op::Upsert(draft) => self.upsert(txn, step, draft, before, revision, chosen)?,
                Op::Delete(_) => delete(txn, step, before, revision)?,
                Op::Status(draft) => set_status(draft, before, revision)?,
                Op::Finalizers(draft) => set_finalizers(draft, before, revision)?,
            };
            changed |= after.as_ref().map(Arc::as_ptr) != before.map(Arc::as_ptr);
            match after {
                Some(after) => new.insert(key.clone(), after),
                None => new.remove(key),
            };
            outcomes.push(outcome);
        }
        if has_cycle(&new) {
            return Err("cycle");
        }
        self.fences.insert(txn.publisher.clone(), txn.fence);
        if let Some(open) = self.open.get_mut(&txn.publisher) {
            open.named.extend(
                txn.steps
                    .iter()
                    .filter(|step| matches!(step.op, Op::Upsert(_)))
                    .map(|step| step.op.key().clone()),
            );
        }
        if changed {
            self.push(revision, new);
        }
        Ok(Applied { changed, outcomes })
    }

    pub(crate) fn begin_sync(&mut self, publisher: &PublisherId, fence: u64, kinds: BTreeSet<Kind>, id: SyncId) {
        self.fences.insert(publisher.clone(), fence);
        for kind in &kinds {
            self.announced.entry(kind.clone()).or_default().entry(publisher.clone()).or_insert(false);
        }
        self.open.insert(publisher.clone(), OpenSync { id, fence, kinds, named: BTreeSet::new() });
    }

    /// Sweeps what the publisher did not name, or marks it; says how much that was.
    pub(crate) fn end_sync(&mut self, publisher: &PublisherId) -> u64 {
        let open = self.open.remove(publisher).unwrap();
        let mut new = self.now().clone();
        let forgotten = |object: &Arc<Obj>| {
            open.kinds.contains(object.key.kind()) && object.manager == *publisher && !open.named.contains(&object.key)
        };
        new.retain(|_, object| !forgotten(object) || !object.finalizers.is_empty());
        let mut deleted = (self.now().len() - new.len()) as u64;
        let revision = self.head() + 1;
        for object in new.values_mut().filter(|object| forgotten(object) && !object.deleting) {
            *object = object.marked(revision);
            deleted += 1;
            hit("sweep that marks");
        }
        if deleted > 0 {
            self.push(revision, new);
        }
        for kind in &open.kinds {
            let publishers = self.announced.get_mut(kind).unwrap();
            publishers.insert(publisher.clone(), true);
        }
        self.synced.insert(publisher.clone());
        deleted
    }

    fn push(&mut self, revision: u64, new: State) {
        for (key, object) in self.now().clone() {
            if !new.contains_key(&key) {
                self.ended.insert(key, (object.uid.clone(), revision));
            }
        }
        self.history.push((revision, new));
    }

    fn upsert(
        &self,
        txn: &Txn,
        step: &Step,
        draft: &Draft,
        before: Option<&Arc<Obj>>,
        revision: u64,
        chosen: Option<Uid>,
    ) -> Result<(Option<Arc<Obj>>, Outcome), &'static str> {
        let known = draft.uid.clone().or_else(|| before.map(|before| before.uid.clone()));
        let uid = known.unwrap_or_else(|| {
            // The store was free to choose, but not the uid of the life before, for as long as it remembers that one.
            let chosen = chosen.unwrap_or_else(|| Uid::new("none").unwrap());
            if let Some((last, at)) = self.ended.get(&draft.key) {
                assert!(chosen != *last || *at <= self.trimmed, "{} was created again with the same uid", draft.key);
            }
            chosen
        });
        let same_life = before.filter(|before| before.uid == uid);
        let foreign = before.is_some_and(|before| before.manager != txn.publisher) && !step.take_over;
        let generation = match (same_life, draft.generation) {
            (None, given) => given.map_or(1, |given| given.0),
            (Some(before), None) => before.generation + u64::from(before.spec != draft.spec),
            // Whose it is comes first: no other generation would make it theirs.
            (Some(before), Some(given)) if given.0 < before.generation => {
                return Err(if foreign { "foreign" } else { "stale generation" });
            }
            (Some(before), Some(given)) if given.0 == before.generation && before.spec != draft.spec => {
                return Err(if foreign { "foreign" } else { "same generation" });
            }
            (Some(_), Some(given)) => given.0,
        };
        let mut after = Obj::new(draft, uid, generation, revision, &txn.publisher);
        if let Some(before) = same_life {
            (after.status, after.observed) = (before.status.clone(), before.observed);
        }
        if let Some(before) = before {
            (after.finalizers, after.deleting) = (before.finalizers.clone(), before.deleting);
        }
        let Some(before) = before else {
            let after = after.sealed();
            let outcome = after.outcome(Effect::Created);
            return Ok((Some(after), outcome));
        };
        let same = {
            let same = Obj { manager: before.manager.clone(), ..after.clone() }.sealed();
            same.full == before.full
        };
        if same && (foreign || before.manager == txn.publisher) {
            return Ok((Some(before.clone()), before.outcome(Effect::Unchanged)));
        }
        if foreign {
            return Err("foreign");
        }
        if before.deleting {
            return Err("deleting");
        }
        if same_life.is_none() && !before.finalizers.is_empty() {
            return Err("unfinished");
        }
        let effect = if same_life.is_some() { Effect::Updated } else { Effect::Created };
        let after = after.sealed();
        let after = if after.plain == before.plain {
            Obj { content_revision: before.content_revision, ..Obj::clone(&after) }.sealed()
        } else {
            after
        };
        let outcome = after.outcome(effect);
        Ok((Some(after), outcome))
    }
}

fn delete(
    txn: &Txn,
    step: &Step,
    before: Option<&Arc<Obj>>,
    revision: u64,
) -> Result<(Option<Arc<Obj>>, Outcome), &'static str> {
    let Some(before) = before else {
        let generation = nimbus_core::Generation(0);
        return Ok((None, Outcome { effect: Effect::Absent, uid: None, generation, revision: Revision(0) }));
    };
    if before.manager != txn.publisher && !step.take_over {
        return Err("foreign");
    }
    if before.deleting {
        return Ok((Some(before.clone()), before.outcome(Effect::Deleting)));
    }
    if !before.finalizers.is_empty() {
        let after = before.marked(revision);
        let outcome = after.outcome(Effect::Deleting);
        return Ok((Some(after), outcome));
    }
    Ok((None, Outcome { revision: Revision(revision), ..before.outcome(Effect::Deleted) }))
}

fn set_status(
    draft: &StatusDraft,
    before: Option<&Arc<Obj>>,
    revision: u64,
) -> Result<(Option<Arc<Obj>>, Outcome), &'static str> {
    let before = before.ok_or("no such object")?;
    if draft.observed.0 > before.generation {
        return Err("observed ahead");
    }
    if before.status == draft.status && before.observed == draft.observed.0 {
        return Ok((Some(before.clone()), before.outcome(Effect::Unchanged)));
    }
    let mut after = Obj::clone(before);
    (after.status, after.observed) = (draft.status.clone(), draft.observed.0);
    (after.revision, after.content_revision) = (revision, revision);
    let after = after.sealed();
    let outcome = after.outcome(Effect::Updated);
    Ok((Some(after), outcome))
}

fn set_finalizers(
    draft: &FinalizersDraft,
    before: Option<&Arc<Obj>>,
    revision: u64,
) -> Result<(Option<Arc<Obj>>, Outcome), &'static str> {
    let before = before.ok_or("no such object")?;
    let old: BTreeSet<&str> = before.finalizers.iter().collect();
    let mut new = old.clone();
    new.extend(draft.add.iter());
    new.retain(|name| !draft.remove.contains(name));
    if new == old {
        return Ok((Some(before.clone()), before.outcome(Effect::Unchanged)));
    }
    if before.deleting && !new.is_subset(&old) {
        return Err("deleting");
    }
    if before.deleting && new.is_empty() {
        hit("finalized");
        return Ok((None, Outcome { revision: Revision(revision), ..before.outcome(Effect::Deleted) }));
    }
    let finalizers = Finalizers::new(new).unwrap();
    let after = Obj { finalizers, revision, content_revision: revision, ..Obj::clone(before) }.sealed();
    let outcome = after.outcome(Effect::Updated);
    Ok((Some(after), outcome))
}

fn holds(precondition: &Precondition, before: Option<&Obj>) -> bool {
    !(precondition.absent && before.is_some())
        && precondition
            .uid
            .as_ref()
            .is_none_or(|uid| before.is_some_and(|before| before.uid == *uid))
        && precondition
            .revision
            .is_none_or(|at| before.is_some_and(|before| before.revision == at.0))
        && precondition
            .generation
            .is_none_or(|at| before.is_some_and(|before| before.generation == at.0))
}

/// Takes away what needs nothing that is left, until nothing changes: what remains is on a cycle or needs one.
fn has_cycle(state: &State) -> bool {
    let mut left: BTreeMap<&ObjectKey, &Arc<Obj>> = state.iter().collect();
    loop {
        let free: Vec<&ObjectKey> = left
            .iter()
            .filter(|(_, object)| !object.needs().any(|key| left.contains_key(key)))
            .map(|(key, _)| *key)
            .collect();
        if free.is_empty() {
            return !left.is_empty();
        }
        for key in free {
            left.remove(key);
        }
    }
}

/// The word that the model has for a refusal.
pub(crate) fn word_for(refused: &Refused) -> &'static str {
    match refused {
        Refused::Fenced { .. } => "fenced",
        Refused::LeaseLost { .. } => "lease lost",
        Refused::NotAhead { .. } => "not ahead",
        Refused::Full { .. } => "full",
        Refused::NoSync(_) => "no sync",
        Refused::NotCovered { .. } => "not covered",
        Refused::Step { reason, .. } => match reason {
            Reason::Precondition { .. } => "precondition",
            Reason::Foreign(_) => "foreign",
            Reason::StaleGeneration { .. } => "stale generation",
            Reason::SameGeneration(_) => "same generation",
            Reason::Cycle(_) => "cycle",
            Reason::Twice => "twice",
            Reason::NoSuchObject => "no such object",
            Reason::Deleting(_) => "deleting",
            Reason::Unfinished(_) => "unfinished",
            Reason::ObservedAhead { .. } => "observed ahead",
            Reason::TooLarge { .. } => "too large",
            _ => "another reason",
        },
        _ => "another refusal",
    }
}
