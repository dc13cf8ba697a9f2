//! A store, its model and some readers, moved by random steps.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use nimbus_core::{
    AgentId, Annotations, Audience, Epoch, Finalizers, Generation, Kind, Labels, ObjectKey, PublisherId, Reference,
    Revision, Selector, Uid,
};
use nimbus_store::{
    Collection, Config, Draft, Fields, FinalizersDraft, Limits, Op, Precondition, StatusDraft, Step as TxnStep, Txn,
};
use proptest::prelude::*;
use prost::Message as _;
use tempfile::TempDir;

use crate::{
    model::{FilterSpec, Model, Scope, State, first_byte, word_for},
    reader::{How, Leaves, Reader, Truth, hit},
};

const KINDS: [&str; 3] = ["test.v1.Alpha", "test.v1.Beta", "test.v1.Gamma"];
const NAMESPACES: [&str; 2] = ["", "ns"];
const NAMES: [&str; 3] = ["n0", "n1", "n2"];
const PUBLISHERS: [&str; 2] = ["p0", "p1"];
const AGENTS: [&str; 4] = ["a0", "a1", "a2", "never-seen"];
const READERS: usize = 5;

/// How a case is set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    assume_complete: bool,
    frame_bytes: usize,
    group_bytes: usize,
    tombstones: usize,
    idle_filters: usize,
    /// Whether the bus is ever restarted.
    restarts: bool,
    /// Whether what is written outlives a restart.
    durable: bool,
    /// Readers that are there from the beginning.
    readers: Vec<ScopeSpec>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Commit { publisher: usize, fence: u8, ops: Vec<OpSpec>, gap: u8, plan: bool },
    Republish { pick: usize },
    Connect { reader: usize, scope: ScopeSpec, how: How },
    Poll { reader: usize, pieces: usize },
    Drain { reader: usize },
    Bookmark { reader: usize },
    Disconnect { reader: usize },
    Reconnect { reader: usize, how: How },
    Rescope { reader: usize, scope: ScopeSpec },
    Trim { back: u64 },
    SyncBegin { publisher: usize, fence: u8, kinds: u8 },
    SyncItems { publisher: usize, items: Vec<OpSpec>, old: usize },
    SyncEnd { publisher: usize },
    SyncAbort { publisher: usize },
    NewEpoch,
    Reopen,
}

#[derive(Debug, Clone)]
pub(crate) struct OpSpec {
    key: (usize, usize, usize),
    what: What,
    precondition: u8,
    take_over: bool,
}

#[derive(Debug, Clone)]
enum What {
    Upsert {
        labels: usize,
        annotations: usize,
        refs: Vec<(usize, usize, usize, bool)>,
        audience: AudienceSpec,
        spec: (u8, u8),
        uid: u8,
        generation: u8,
    },
    /// Changes one thing of what is there.
    Tweak {
        labels: Option<usize>,
        annotations: Option<usize>,
        audience: Option<AudienceSpec>,
        spec: Option<(u8, u8)>,
    },
    Delete,
    Status {
        value: u8,
        ahead: u8,
    },
    /// Bits of [`FINALIZERS`].
    Finalizers {
        add: u8,
        remove: u8,
    },
}

#[derive(Debug, Clone)]
enum AudienceSpec {
    Everyone,
    Selector(usize),
    Named(u8),
}

#[derive(Debug, Clone)]
pub(crate) struct ScopeSpec {
    kinds: u8,
    filter: usize,
    agent: usize,
    labels: usize,
}

const AUDIENCE_SELECTORS: [&str; 6] = ["z=1", "z in (1,2)", "!r", "r=x,z=1", "", "r!=y"];
const AGENT_LABELS: [&[(&str, &str)]; 5] =
    [&[], &[("z", "1")], &[("z", "2")], &[("z", "1"), ("r", "x")], &[("r", "y"), ("z", "2")]];
const OBJECT_LABELS: [&[(&str, &str)]; 4] = [&[], &[("t", "web")], &[("t", "api")], &[("t", "web"), ("legacy", "")]];
const ANNOTATIONS: [&[(&str, &str)]; 3] = [&[], &[("note", "one, two")], &[("note", ""), ("ticket", "42")]];
const FINALIZERS: [&str; 2] = ["dns", "firewall"];

fn filters(index: usize) -> FilterSpec {
    let none = FilterSpec::default();
    match index {
        0 => FilterSpec { names: vec!["n0"], ..none },
        1 => FilterSpec { namespaces: vec!["ns"], ..none },
        2 => FilterSpec { selector: "t=web", ..none },
        3 => FilterSpec { selector: "!legacy", ..none },
        4 => FilterSpec { selector: "t in (web,api)", names: vec!["n0", "n2"], ..none },
        5 => FilterSpec { first: Some((true, 1)), ..none },
        6 => FilterSpec { first: Some((false, 2)), selector: "t!=api", ..none },
        7 => FilterSpec { namespaces: vec![""], selector: "t", ..none },
        _ => none,
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    Labels::new(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()).unwrap()
}

fn annotations(index: usize) -> Annotations {
    let pairs = ANNOTATIONS[index].iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Annotations::new(pairs.collect()).unwrap()
}

fn finalizers(bits: u8) -> Finalizers {
    let names = (0..FINALIZERS.len()).filter(|at| bits & (1 << at) != 0);
    Finalizers::new(names.map(|at| FINALIZERS[at])).unwrap()
}

fn kind(index: usize) -> Kind {
    Kind::new(KINDS[index]).unwrap()
}

fn kinds(bits: u8) -> BTreeSet<Kind> {
    (0..KINDS.len()).filter(|at| bits & (1 << at) != 0).map(kind).collect()
}

fn key((kind_at, namespace, name): (usize, usize, usize)) -> ObjectKey {
    ObjectKey::new(kind(kind_at), NAMESPACES[namespace], NAMES[name]).unwrap()
}

fn publisher(index: usize) -> PublisherId {
    PublisherId::new(PUBLISHERS[index]).unwrap()
}

/// An encoded `Any` whose value begins with a byte that filters look at.
pub(crate) fn spec(kind: &Kind, first: u8, pad: usize) -> Bytes {
    let value = std::iter::once(first).chain(std::iter::repeat_n(7, pad)).collect();
    prost_types::Any { type_url: format!("t/{kind}"), value }.encode_to_vec().into()
}

/// Reads the first byte of a spec as field `first`.
#[derive(Debug)]
pub(crate) struct FirstByte;

impl Fields for FirstByte {
    fn field(&self, _: &Kind, spec: &[u8], path: &str) -> Option<String> {
        (path == "first").then(|| first_byte(spec))?.map(|byte| byte.to_string())
    }
}

// === impl AudienceSpec ===

impl AudienceSpec {
    fn audience(&self) -> Audience {
        match self {
            Self::Everyone => Audience::Everyone,
            Self::Selector(at) => Audience::Selector(Selector::parse(AUDIENCE_SELECTORS[*at]).unwrap()),
            Self::Named(bits) => {
                let named = (0..AGENTS.len()).filter(|at| bits & (1 << at) != 0);
                Audience::Agents(Arc::new(named.map(|at| AgentId::new(AGENTS[at]).unwrap()).collect()))
            }
        }
    }
}

// === impl ScopeSpec ===

impl ScopeSpec {
    fn scope(&self) -> Scope {
        Scope {
            kinds: (self.kinds != 0).then(|| kinds(self.kinds)),
            filter: filters(self.filter),
            selector: Selector::parse(filters(self.filter).selector).unwrap(),
            agent: (self.agent < 3)
                .then(|| (AgentId::new(AGENTS[self.agent]).unwrap(), labels(AGENT_LABELS[self.labels]))),
        }
    }
}

/// A store, its model and some readers.
pub(crate) struct World {
    setup: Setup,
    epoch: u64,
    /// `None` only while it is reopened.
    store: Option<Collection>,
    directory: Option<TempDir>,
    model: Model,
    readers: Vec<Option<Reader>>,
    leaves: Leaves,
    /// What there was when the last epoch ended: what publishers sync.
    before: State,
    uids: u64,
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let directory = setup.durable.then(|| TempDir::new().unwrap());
        let (store, model) = begin(&setup, directory.as_ref(), 1);
        let readers = setup.readers.iter().map(|scope| Some(Reader::new(scope.scope()))).collect();
        let (leaves, before) = (Leaves::default(), State::new());
        Self { setup, epoch: 1, store: Some(store), directory, model, readers, leaves, before, uids: 0 }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Commit { publisher: who, fence, ops, gap, plan } => {
                let mut steps: Vec<_> = ops.iter().map(|op| self.resolve(op)).collect();
                if *gap != 7 {
                    let mut keys = BTreeSet::new();
                    steps.retain(|step| keys.insert(step.op.key().clone()));
                }
                let txn =
                    Txn { publisher: publisher(*who), fence: self.fence(*who, *fence), leases: Vec::new(), steps };
                let at = match gap {
                    0..=7 => None,
                    8 => Some(self.model.head()),
                    gap => Some(self.model.head() + u64::from(*gap - 8)),
                };
                if *plan {
                    let before = self.store().state();
                    let planned = self.store().plan(&txn).map_err(|refused| word_for(&refused));
                    assert_eq!(before.head(), self.store().state().head(), "a plan changes nothing");
                    if at.is_none() {
                        let done = self.commit(&txn, None);
                        assert_eq!(planned.map(|planned| planned.outcomes), done, "what was planned");
                        return;
                    }
                }
                let _ = self.commit(&txn, at);
            }
            Step::Republish { pick } => {
                let now = self.model.now();
                if now.is_empty() {
                    return;
                }
                let object = now.values().nth(pick % now.len()).unwrap().clone();
                let fence = self.model.fence(&object.manager);
                let steps = vec![Op::Upsert(object.draft()).into()];
                let (head, txn) =
                    (self.model.head(), Txn { publisher: object.manager.clone(), fence, leases: Vec::new(), steps });
                self.commit(&txn, None).unwrap();
                assert_eq!(self.store().state().head().0, head, "publishing what is there makes no revision");
            }
            Step::Connect { reader, scope, how } => {
                self.readers[*reader] = Some(Reader::new(scope.scope()));
                self.with_reader(*reader, |reader, store, truth| reader.connect(store, *how, truth));
            }
            Step::Poll { reader, pieces } => self.with_reader(*reader, |reader, store, truth| {
                if !reader.is_connected() {
                    let how = How { forget_position: false, root: true, buckets: *pieces > 1, eager: *pieces > 2 };
                    reader.connect(store, how, truth);
                }
                for _ in 0..*pieces {
                    if !reader.poll(store, truth) {
                        break;
                    }
                }
            }),
            Step::Drain { reader } => self.with_reader(*reader, drain),
            Step::Bookmark { reader } => {
                self.with_reader(*reader, |reader, _, truth| reader.ask_for_bookmark(truth));
            }
            Step::Disconnect { reader } => self.with_reader(*reader, |reader, _, _| reader.disconnect()),
            Step::Reconnect { reader, how } => self.with_reader(*reader, |reader, store, truth| {
                reader.disconnect();
                reader.connect(store, *how, truth);
            }),
            Step::Rescope { reader, scope } => self.with_reader(*reader, |reader, store, truth| {
                let mut scope = scope.scope();
                // Who somebody is does not change; what it asks for and its labels do.
                scope.agent = match (&reader.wanted.agent, scope.agent) {
                    (Some((id, _)), Some((_, labels))) => Some((id.clone(), labels)),
                    (same, _) => same.clone(),
                };
                reader.rescope(scope, store, truth);
            }),
            Step::Trim { back } => {
                let to = self.model.head().saturating_sub(*back);
                self.store().trim(Revision(to));
                assert!(self.store().state().horizon().0 >= to, "the horizon is where it was trimmed");
            }
            Step::SyncBegin { publisher: who, fence, kinds: bits } => {
                let (who, fence) = (publisher(*who), self.fence(*who, *fence));
                let kinds = kinds(*bits);
                match self.store().begin_sync(&who, fence, kinds.clone()) {
                    Ok(id) => {
                        assert!(fence >= self.model.fence(&who), "a fenced publisher begins a sync");
                        self.model.begin_sync(&who, fence, kinds, id);
                    }
                    Err(_) => assert!(fence < self.model.fence(&who), "it may begin a sync"),
                }
            }
            Step::SyncItems { publisher: who, items, old } => self.sync_items(&publisher(*who), items, *old),
            Step::SyncEnd { publisher: who } => self.end_sync(&publisher(*who)),
            Step::SyncAbort { publisher: who } => {
                if let Some(open) = self.model.open.remove(&publisher(*who)) {
                    self.store().abort_sync(&open.id);
                    assert!(self.store().end_sync(&open.id).is_err(), "an aborted sync is not open");
                }
            }
            Step::NewEpoch if self.setup.restarts => self.new_epoch(),
            Step::Reopen if self.setup.durable => self.reopen(),
            Step::NewEpoch | Step::Reopen => {}
        }
        self.check_state();
    }

    /// Writes stop and faults end: every reader holds exactly its feed.
    pub(crate) fn finish(&mut self) {
        for who in PUBLISHERS {
            let who = PublisherId::new(who).unwrap();
            let fence = self.model.fence(&who);
            let all = kinds(0b111);
            let id = self.store().begin_sync(&who, fence, all.clone()).unwrap();
            self.model.begin_sync(&who, fence, all, id);
            self.sync_items(&who, &[], 100);
            self.end_sync(&who);
        }
        let how = How { forget_position: false, root: true, buckets: true, eager: false };
        for at in 0..self.readers.len() {
            self.with_reader(at, |reader, store, truth| {
                if !reader.is_connected() {
                    reader.connect(store, how, truth);
                }
                drain(reader, store, truth);
                let have: Vec<_> = reader.held.keys().collect();
                let want: Vec<_> = truth.model.visible(&reader.wanted, u64::MAX).into_keys().collect();
                assert_eq!(have, want, "what a reader holds in the end");
            });
        }
        self.check_state();
    }

    fn store(&self) -> &Collection {
        self.store.as_ref().unwrap()
    }

    fn with_reader(&mut self, at: usize, act: impl FnOnce(&mut Reader, &Collection, &mut Truth<'_>)) {
        let Some(reader) = &mut self.readers[at] else { return };
        let frame_bytes = self.setup.frame_bytes;
        let mut truth = Truth { model: &self.model, epoch: self.epoch, frame_bytes, leaves: &mut self.leaves };
        act(reader, self.store.as_ref().unwrap(), &mut truth);
    }

    fn commit(&mut self, txn: &Txn, at: Option<u64>) -> Result<Vec<nimbus_store::Outcome>, &'static str> {
        let before = self.store().state();
        self.model.trimmed = before.horizon().0;
        let done = match at {
            None => self.store().commit(txn),
            Some(at) => self.store().commit_at(Revision(at), txn),
        };
        let outcomes = done.as_ref().ok().map(|done| &*done.outcomes);
        let expected = self.model.commit(txn, at, outcomes);
        match (&done, &expected) {
            (Ok(done), Ok(expected)) => {
                assert_eq!(done.outcomes, expected.outcomes, "outcomes of {txn:?}");
                assert_eq!(done.revision.0, self.model.head(), "the revision of {txn:?}");
                // A fence that rises is written down, too.
                let same = before.head() == self.store().state().head() && self.setup.durable;
                let same = same || Arc::ptr_eq(&before, &self.store().state());
                assert!(expected.changed || same, "nothing changed: {txn:?}");
                hit(if expected.changed { "commit" } else { "no-op" });
            }
            (Err(refused), Err(word)) => {
                assert_eq!(word_for(refused), *word, "{refused}");
                assert!(Arc::ptr_eq(&before, &self.store().state()), "it was refused, but something changed");
                hit(word);
            }
            _ => panic!("the store says {done:?}, the model {expected:?} to {txn:?}"),
        }
        done.map(|done| done.outcomes).map_err(|refused| word_for(&refused))
    }

    fn sync_items(&mut self, who: &PublisherId, items: &[OpSpec], old: usize) {
        let Some(open) = self.model.open.get(who) else { return };
        let (id, fence, covered) = (open.id.clone(), open.fence, open.kinds.clone());
        let named = open.named.clone();
        let mut drafts: Vec<Draft> = Vec::new();
        for item in items {
            if let Op::Upsert(draft) = self.resolve(item).op
                && drafts.iter().all(|other| other.key != draft.key)
            {
                drafts.push(draft);
            }
        }
        // What it published before, first what is there already.
        for object in self.model.now().values().chain(self.before.values()) {
            let known = named.contains(&object.key) || drafts.iter().any(|other| other.key == object.key);
            let owner = self.model.now().get(&object.key).map_or(&object.manager, |now| &now.manager);
            if drafts.len() < old + items.len() && !known && *owner == *who && covered.contains(object.key.kind()) {
                drafts.push(object.draft());
            }
        }
        if let Some(other) = drafts.iter().find(|draft| !covered.contains(draft.key.kind())) {
            let refused = self.store().sync_items(&id, drafts.clone()).unwrap_err();
            assert_eq!(word_for(&refused), "not covered", "{}", other.key);
            drafts.retain(|draft| covered.contains(draft.key.kind()));
        }
        let steps = drafts.iter().cloned().map(|draft| Op::Upsert(draft).into()).collect();
        let txn = Txn { publisher: who.clone(), fence, leases: Vec::new(), steps };
        self.model.trimmed = self.store().state().horizon().0;
        let done = self.store().sync_items(&id, drafts);
        let expected = self.model.commit(&txn, None, done.as_ref().ok().map(|done| &*done.outcomes));
        match (done, expected) {
            (Ok(done), Ok(expected)) => assert_eq!(done.outcomes, expected.outcomes, "outcomes of items"),
            (Err(refused), Err(word)) => assert_eq!(word_for(&refused), word, "{refused}"),
            (done, expected) => panic!("the store says {done:?}, the model {expected:?} to items {txn:?}"),
        }
    }

    fn end_sync(&mut self, who: &PublisherId) {
        let Some(open) = self.model.open.get(who) else { return };
        let id = open.id.clone();
        if open.fence < self.model.fence(who) {
            let refused = self.store().end_sync(&id).expect_err("a fenced publisher must not sweep");
            assert_eq!(word_for(&refused), "fenced");
            self.model.open.remove(who);
            return;
        }
        let (revision, summary) = self.store().end_sync(&id).unwrap();
        assert_eq!(summary.deleted, self.model.end_sync(who), "objects that were swept");
        assert_eq!(revision.0, self.model.head(), "the revision of the sweep");
        assert!(self.store().end_sync(&id).is_err(), "a sync ends once");
        hit("sync");
    }

    fn new_epoch(&mut self) {
        self.readers.iter_mut().flatten().for_each(Reader::disconnect);
        self.before = self.model.now().clone();
        self.epoch += 1;
        self.store = None;
        self.directory = self.setup.durable.then(|| TempDir::new().unwrap());
        let (store, model) = begin(&self.setup, self.directory.as_ref(), self.epoch);
        (self.store, self.model) = (Some(store), model);
        hit("epoch");
    }

    /// The process ends and begins again: all connections and syncs are gone, and nothing else.
    fn reopen(&mut self) {
        self.readers.iter_mut().flatten().for_each(Reader::disconnect);
        self.model.open.clear();
        let before = self.store.take().unwrap().state();
        let (store, _) = begin(&self.setup, self.directory.as_ref(), self.epoch);
        let after = store.state();
        assert_eq!((after.epoch(), after.head()), (before.epoch(), before.head()), "where the history goes on");
        assert_eq!(after.horizon(), before.horizon(), "the horizon");
        self.store = Some(store);
        hit("reopen");
    }

    fn check_state(&self) {
        let (state, now) = (self.store().state(), self.model.now());
        assert_eq!(state.head().0, self.model.head(), "the head");
        assert_eq!(state.objects(), now.len(), "objects in all");
        let all: Vec<_> = state.kinds().flat_map(|(_, kind)| kind.all().iter(None)).collect();
        assert!(all.iter().map(|record| record.key()).eq(now.keys()), "the names of all objects");
        assert_eq!(state.bytes(), all.iter().map(|record| record.size() as u64).sum::<u64>(), "bytes in all");
        for (record, object) in all.iter().zip(now.values()) {
            assert_eq!(record.revision().0, object.revision, "the revision of {}", object.key);
        }
    }

    /// Mostly what passes, sometimes one less, seldom one more.
    fn fence(&self, who: usize, choice: u8) -> u64 {
        let current = self.model.fence(&publisher(who));
        match choice {
            38 => current + 1,
            39 => current.saturating_sub(1),
            _ => current,
        }
    }

    fn resolve(&mut self, op: &OpSpec) -> TxnStep {
        let mut key = key(op.key);
        let now = self.model.now();
        if !matches!(op.what, What::Upsert { .. }) && !now.contains_key(&key) && !now.is_empty() {
            // Changes of what is not there are tried often enough while there is nothing.
            let (kind, namespace, name) = op.key;
            key = now.keys().nth((kind * 6 + namespace * 3 + name) % now.len()).unwrap().clone();
        }
        let old = now.get(&key).cloned();
        let precondition = match (op.precondition, &old) {
            (55, _) => Precondition { absent: true, ..Precondition::default() },
            (56, Some(old)) => Precondition {
                absent: false,
                uid: Some(old.uid.clone()),
                revision: Some(Revision(old.revision)),
                generation: Some(Generation(old.generation)),
            },
            (57, Some(old)) => Precondition { revision: Some(Revision(old.revision - 1)), ..Precondition::default() },
            (58, Some(old)) => {
                Precondition { generation: Some(Generation(old.generation + 1)), ..Precondition::default() }
            }
            (59, _) => Precondition { uid: Some(Uid::new("other").unwrap()), ..Precondition::default() },
            _ => Precondition::default(),
        };
        let op_ = match &op.what {
            What::Upsert { labels: of, annotations: notes, refs, audience, spec: (first, pad), uid, generation } => {
                Op::Upsert(Draft {
                    uid: match (uid, &old) {
                        (6, _) => {
                            self.uids += 1;
                            Some(Uid::new(&format!("u{}", self.uids)).unwrap())
                        }
                        (7, Some(old)) => Some(old.uid.clone()),
                        _ => None,
                    },
                    generation: match (generation, &old) {
                        (20, Some(old)) => Some(Generation(old.generation.saturating_sub(1))),
                        (21, Some(old)) => Some(Generation(old.generation)),
                        (22, Some(old)) => Some(Generation(old.generation + 2)),
                        (23, None) => Some(Generation(5)),
                        _ => None,
                    },
                    labels: labels(OBJECT_LABELS[*of]),
                    refs: refs
                        .iter()
                        .map(|(kind, namespace, name, weak)| Reference {
                            to: self::key((*kind, *namespace, *name)),
                            weak: *weak,
                            declared: false,
                        })
                        .collect(),
                    owner: None,
                    annotations: annotations(*notes),
                    audience: audience.audience(),
                    spec: if *first == 3 { Bytes::new() } else { spec(key.kind(), *first, usize::from(*pad)) },
                    key,
                })
            }
            What::Tweak { labels: of, annotations: notes, audience, spec: to } => match &old {
                None => Op::Delete(key),
                Some(old) => {
                    let mut draft = Draft { generation: None, ..old.draft() };
                    if let Some(of) = of {
                        draft.labels = labels(OBJECT_LABELS[*of]);
                    }
                    if let Some(notes) = notes {
                        draft.annotations = annotations(*notes);
                    }
                    if let Some(audience) = audience {
                        draft.audience = audience.audience();
                    }
                    if let Some((first, pad)) = to {
                        draft.spec = spec(key.kind(), *first, usize::from(*pad));
                    }
                    Op::Upsert(draft)
                }
            },
            What::Delete => Op::Delete(key),
            What::Status { value, ahead } => Op::Status(StatusDraft {
                status: if *value == 0 { Bytes::new() } else { spec(key.kind(), *value, 2) },
                observed: Generation(old.map_or(1, |old| old.generation + u64::from(*ahead == 7))),
                key,
            }),
            What::Finalizers { add, remove } => {
                Op::Finalizers(FinalizersDraft { key, add: finalizers(*add), remove: finalizers(*remove) })
            }
        };
        TxnStep { op: op_, precondition, take_over: op.take_over }
    }
}

fn begin(setup: &Setup, directory: Option<&TempDir>, epoch: u64) -> (Collection, Model) {
    let limits = Limits { tombstones: setup.tombstones, idle_filters: setup.idle_filters, ..Limits::default() };
    let config = Config {
        limits,
        fields: Arc::new(FirstByte),
        assume_complete: setup.assume_complete && epoch == 1,
        frame_bytes: setup.frame_bytes,
        group_bytes: setup.group_bytes,
        // So little that it is full now and then.
        log_bytes: 2 << 10,
        ..Config::new(Epoch(epoch))
    };
    let store = match directory {
        None => Collection::new(config),
        Some(directory) => Collection::open(&directory.path().join("collection"), config).unwrap(),
    };
    (store, Model::new(setup.assume_complete && epoch == 1, directory.is_some()))
}

fn drain(reader: &mut Reader, store: &Collection, truth: &mut Truth<'_>) {
    let mut pieces = 0;
    while reader.poll(store, truth) {
        pieces += 1;
        assert!(pieces < 10_000, "a reader is never done");
    }
}

// Strategies

pub(crate) fn setup(durable: bool) -> impl Strategy<Value = Setup> {
    (
        prop::bool::weighted(0.6),
        prop::sample::select(vec![80, 300, 1500, 256 << 10]),
        prop::sample::select(vec![600, 2500, 512 << 20]),
        prop_oneof![1 => Just(0), 1 => Just(3), 2 => Just(20), 4 => Just(200_000)],
        prop::sample::select(vec![0, 2, 1000]),
        prop::bool::weighted(0.4),
        prop::collection::vec(scope(), READERS),
    )
        .prop_map(
            move |(assume_complete, frame_bytes, group_bytes, tombstones, idle_filters, restarts, readers)| {
                let restarts = restarts && !durable;
                Setup {
                    assume_complete,
                    frame_bytes,
                    group_bytes,
                    tombstones,
                    idle_filters,
                    restarts,
                    durable,
                    readers,
                }
            },
        )
}

fn key_spec() -> impl Strategy<Value = (usize, usize, usize)> {
    (0..KINDS.len(), 0..NAMESPACES.len(), 0..NAMES.len())
}

fn audience() -> impl Strategy<Value = AudienceSpec> {
    prop_oneof![
        3 => Just(AudienceSpec::Everyone),
        3 => (0..AUDIENCE_SELECTORS.len()).prop_map(AudienceSpec::Selector),
        4 => (0..16_u8).prop_map(AudienceSpec::Named),
    ]
}

fn what() -> impl Strategy<Value = What> {
    let reference = (key_spec(), prop::bool::weighted(0.2)).prop_map(|((a, b, c), weak)| (a, b, c, weak));
    let refs = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(reference, 1..3)];
    let pairs = (0..OBJECT_LABELS.len(), 0..ANNOTATIONS.len());
    let upsert = (pairs, refs, audience(), (0..4_u8, 0..40_u8), 0..8_u8, 0..24_u8).prop_map(
        |((labels, annotations), refs, audience, spec, uid, generation)| What::Upsert {
            labels,
            annotations,
            refs,
            audience,
            spec,
            uid,
            generation,
        },
    );
    let tweak = prop_oneof![
        (0..OBJECT_LABELS.len()).prop_map(|labels| (Some(labels), None, None, None)),
        (0..ANNOTATIONS.len()).prop_map(|annotations| (None, Some(annotations), None, None)),
        audience().prop_map(|audience| (None, None, Some(audience), None)),
        (0..3_u8, 0..40_u8).prop_map(|spec| (None, None, None, Some(spec))),
    ]
    .prop_map(|(labels, annotations, audience, spec)| What::Tweak { labels, annotations, audience, spec });
    // Mostly one of them, or all that are left: what is never done is never gone.
    let finalizers = prop_oneof![
        2 => (1..3_u8).prop_map(|add| (add, 0)),
        3 => Just((0, 3)),
        1 => (0..4_u8, 0..4_u8),
    ]
    .prop_map(|(add, remove)| What::Finalizers { add, remove });
    prop_oneof![
        5 => upsert,
        5 => tweak,
        4 => Just(What::Delete),
        1 => (0..3_u8, 0..8_u8).prop_map(|(value, ahead)| What::Status { value, ahead }),
        3 => finalizers,
    ]
}

fn op() -> impl Strategy<Value = OpSpec> {
    (key_spec(), what(), 0..60_u8, prop::bool::weighted(0.8)).prop_map(|(key, what, precondition, take_over)| OpSpec {
        key,
        what,
        precondition,
        take_over,
    })
}

fn scope() -> impl Strategy<Value = ScopeSpec> {
    let filter = prop_oneof![2 => Just(99_usize), 3 => 0..8_usize];
    (prop_oneof![3 => Just(0_u8), 2 => 1..8_u8], filter, 0..5_usize, 0..AGENT_LABELS.len())
        .prop_map(|(kinds, filter, agent, labels)| ScopeSpec { kinds, filter, agent, labels })
}

fn how() -> impl Strategy<Value = How> {
    (prop::bool::weighted(0.15), any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(forget_position, root, buckets, eager)| How { forget_position, root, buckets, eager })
}

fn step() -> impl Strategy<Value = Step> {
    let reader = 0..READERS;
    let who = prop_oneof![4 => Just(0_usize), 1 => Just(1_usize)];
    let ops = prop_oneof![4 => prop::collection::vec(op(), 1..3), 1 => prop::collection::vec(op(), 3..9)];
    prop_oneof![
        30 => (who.clone(), 0..40_u8, ops, prop_oneof![8 => 0..8_u8, 1 => 8..12_u8], prop::bool::weighted(0.05))
            .prop_map(|(publisher, fence, ops, gap, plan)| Step::Commit { publisher, fence, ops, gap, plan }),
        2 => (0..20_usize).prop_map(|pick| Step::Republish { pick }),
        3 => (reader.clone(), scope(), how()).prop_map(|(reader, scope, how)| Step::Connect { reader, scope, how }),
        20 => (reader.clone(), 1..4_usize).prop_map(|(reader, pieces)| Step::Poll { reader, pieces }),
        8 => reader.clone().prop_map(|reader| Step::Drain { reader }),
        2 => reader.clone().prop_map(|reader| Step::Bookmark { reader }),
        1 => reader.clone().prop_map(|reader| Step::Disconnect { reader }),
        6 => (reader.clone(), how()).prop_map(|(reader, how)| Step::Reconnect { reader, how }),
        4 => (reader, scope()).prop_map(|(reader, scope)| Step::Rescope { reader, scope }),
        1 => (0..20_u64).prop_map(|back| Step::Trim { back }),
        3 => (who.clone(), 0..40_u8, 1..8_u8).prop_map(|(publisher, fence, kinds)| Step::SyncBegin { publisher, fence, kinds }),
        4 => (who.clone(), prop::collection::vec(op(), 0..3), 0..12_usize)
            .prop_map(|(publisher, items, old)| Step::SyncItems { publisher, items, old }),
        3 => who.clone().prop_map(|publisher| Step::SyncEnd { publisher }),
        1 => who.prop_map(|publisher| Step::SyncAbort { publisher }),
        1 => Just(Step::NewEpoch),
        3 => Just(Step::Reopen),
    ]
}

pub(crate) fn steps(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), len)
}
