//! A collection, a fleet and sessions without any network; time is passed in.

mod counts;
mod explanations;
mod kept;
mod model;
mod order;
mod sampling;
mod scopes;
mod speed;
mod watching;

use std::{collections::BTreeMap, sync::Arc};

use nimbus_core::{AgentId, Audience, Epoch, Kind, Labels, ObjectKey, PublisherId, Revision, Selector};
use nimbus_store::{Collection, Draft, Filter, NoFields, Op, Reach, Scope, Signal, Step, Txn, Viewer as StoreViewer};
use nimbus_wire::v1::{self, Phase};
use tokio::time::{Duration, Instant};
use tonic::Status;

use crate::{
    config::{Config, Limits},
    fleet::{
        Fleet, Opening, Report,
        explain::{Finding, Inspector},
        propagation::Survey,
        target::Target,
        view::{Health, Viewer},
    },
    metrics::Metrics,
    session::{News, Order, Session},
    sessions::Sessions,
};

pub(super) const LOST_AFTER: u64 = 30;
pub(super) const FORGET_AFTER: u64 = 100;

/// A collection, a fleet and its sessions.
pub(super) struct Land {
    pub(super) store: Collection,
    pub(super) fleet: Arc<Fleet>,
    sessions: Sessions,
    open: BTreeMap<String, Open>,
    start: Instant,
    pub(super) now: Instant,
}

/// A session and what its agent knows of it.
struct Open {
    session: Arc<Session>,
    sequence: u64,
}

/// What an agent reports.
#[derive(Default, Clone)]
pub(super) struct Said {
    pub(super) received: u64,
    pub(super) applied: u64,
    pub(super) exceptions: Vec<v1::Exception>,
    pub(super) cleared: Vec<ObjectKey>,
    pub(super) full: bool,
    pub(super) scope_changes: u32,
    pub(super) rescope: Option<Scope>,
    pub(super) statuses: Vec<v1::ObjectStatus>,
    pub(super) leaving: bool,
}

impl Land {
    pub(super) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(super) fn with(limits: Limits) -> Self {
        let (lost_after, forget_after) = (Duration::from_secs(LOST_AFTER), Duration::from_secs(FORGET_AFTER));
        let config = Config { lost_after, forget_after, limits, ..Config::new(Epoch(7), 7) };
        let fleet = Arc::new(Fleet::new(&config, Metrics::default()));
        // Ages reach back before the beginning.
        let start = Instant::now() + Duration::from_secs(1_000_000);
        Self {
            store: Collection::new(nimbus_store::Config::new(Epoch(7))),
            sessions: Sessions::new(7, usize::MAX, fleet.clone(), Metrics::default()),
            fleet,
            open: BTreeMap::new(),
            start,
            now: start,
        }
    }

    /// So many milliseconds after the beginning.
    pub(super) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = self.start + Duration::from_millis(ms);
        self
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    pub(super) fn commit(&mut self, steps: Vec<Step>) -> u64 {
        let publisher = PublisherId::new("p").unwrap();
        let committed = self.store.commit(&Txn { publisher, fence: 0, leases: Vec::new(), steps }).unwrap();
        self.fleet.published(committed.revision, None, self.now);
        committed.revision.0
    }

    pub(super) fn put(&mut self, name: &str, spec: u8, audience: Audience) -> u64 {
        self.commit(vec![put(&key(name), spec, audience)])
    }

    pub(super) fn delete(&mut self, name: &str) -> u64 {
        self.commit(vec![Op::Delete(key(name)).into()])
    }

    /// Opens a session; `resumed` if it goes on from there.
    pub(super) fn connect(&mut self, id: &str, scope: Scope, resumed: Option<u64>) {
        let session = self.sessions.prepare(Some(agent_id(id)), Signal::default()).unwrap();
        let opening = Opening {
            session: session.id,
            scope,
            software: "test".to_owned(),
            resumed: resumed.map(Revision),
            head: self.store.state().head(),
        };
        self.sessions.open(&session, opening, self.now);
        self.open.insert(id.to_owned(), Open { session, sequence: 0 });
    }

    /// Ends a session.
    pub(super) fn cut(&mut self, id: &str) {
        let open = self.open.remove(id).unwrap();
        self.sessions.close(&open.session, self.now);
    }

    pub(super) fn say(&mut self, id: &str, said: Said) -> Result<(v1::ReportResponse, News), Status> {
        let open = self.open.get_mut(id).unwrap();
        let request = v1::ReportRequest {
            session: open.session.id,
            sequence: open.sequence + 1,
            received: said.received,
            applied: said.applied,
            exceptions: said.exceptions,
            cleared: said.cleared.iter().map(ObjectKey::to_wire).collect(),
            full: said.full,
            scope_changes: said.scope_changes,
            statuses: said.statuses,
            leaving: said.leaving,
            ..Default::default()
        };
        let head = self.store.state().head();
        let report = Report::parse(request, self.now)?;
        let answer = open.session.report(report, said.rescope, head, &self.fleet, self.now)?;
        open.sequence += 1;
        Ok(answer)
    }

    /// Everything up to this revision is applied.
    pub(super) fn applied(&mut self, id: &str, revision: u64) {
        self.say(id, Said { received: revision, applied: revision, ..Said::default() }).unwrap();
    }

    /// The stream takes the scope that was asked for.
    pub(super) fn take_rescope(&mut self, id: &str) -> bool {
        matches!(self.open[id].session.order(), Some(Order::Rescope(_)))
    }

    /// The stream tells the agent that its scope has changed.
    pub(super) fn switch(&mut self, id: &str) {
        self.open[id].session.switched(self.store.state().head());
    }

    /// The stream has sent everything up to this revision.
    pub(super) fn sent(&mut self, id: &str, revision: u64) {
        self.open[id].session.sent(Revision(revision));
    }

    pub(super) fn survey(&self, target: &Target, survey: &Survey) -> Result<v1::Propagation, Status> {
        self.fleet.tick(self.now);
        let state = self.store.state();
        let aim = target.aim(&state)?;
        Ok(survey.count(&self.fleet, &state, &NoFields, &aim, self.now))
    }

    pub(super) fn of_object(&self, name: &str) -> v1::Propagation {
        self.survey(&Target::Object(key(name)), &everybody()).unwrap()
    }

    pub(super) fn of_revision(&self, revision: u64) -> v1::Propagation {
        self.survey(&Target::Revision(Revision(revision)), &everybody()).unwrap()
    }

    pub(super) fn health(&self, id: &str) -> Health {
        let state = self.store.state();
        let agent = self.fleet.agent(&agent_id(id)).unwrap();
        let entry = agent.entry.lock();
        Viewer::new(&self.fleet, &state, None, self.now).health(&agent, &entry)
    }

    pub(super) fn find(&self, id: &str, key: &ObjectKey) -> (Finding, Vec<v1::Hop>) {
        let (state, id) = (self.store.state(), agent_id(id));
        let agent = self.fleet.agent(&id).unwrap();
        let entry = agent.entry.lock();
        let lost_after = self.fleet.lost_after;
        let inspector =
            Inspector { state: &state, fields: &NoFields, agent: &id, entry: &entry, lost_after, now: self.now };
        (inspector.find(key), inspector.chain(key))
    }

    /// Connected, away, lost.
    pub(super) fn census(&self) -> [usize; 3] {
        self.fleet.tick(self.now);
        self.fleet.census()
    }
}

pub(super) fn everybody() -> Survey {
    Survey { selector: Selector::default(), count_lost: false, max_agents: 100 }
}

pub(super) fn agent_id(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

pub(super) fn kind(name: &str) -> Kind {
    Kind::new(&format!("t.v1.{name}")).unwrap()
}

/// A key such as `Alpha/a`; `a` is of the kind `Alpha`.
pub(super) fn key(name: &str) -> ObjectKey {
    let (of, name) = name.split_once('/').unwrap_or(("Alpha", name));
    ObjectKey::new(kind(of), "", name).unwrap()
}

pub(super) fn put(key: &ObjectKey, spec: u8, audience: Audience) -> Step {
    let any = prost_types::Any { type_url: format!("type.googleapis.com/{}", key.kind()), value: vec![8, spec] };
    let spec = prost::Message::encode_to_vec(&any).into();
    let (uid, generation, labels, refs, owner) = (None, None, Labels::default(), Arc::default(), None);
    let annotations = nimbus_core::Annotations::default();
    Op::Upsert(Draft { key: key.clone(), uid, generation, labels, refs, owner, annotations, audience, spec }).into()
}

pub(super) fn selector(text: &str) -> Audience {
    Audience::Selector(Selector::parse(text).unwrap())
}

pub(super) fn named(names: &[&str]) -> Audience {
    Audience::Agents(Arc::new(names.iter().map(|name| agent_id(name)).collect()))
}

/// An agent in a zone; no kinds means all.
pub(super) fn scope(id: &str, zone: &str, kinds: &[&str]) -> Scope {
    let labels = Labels::new(&[("zone".to_owned(), zone.to_owned())].into()).unwrap();
    let kinds: std::collections::BTreeSet<_> = kinds.iter().map(|name| kind(name)).collect();
    let viewer = StoreViewer::Agent { id: agent_id(id), labels };
    Scope { kinds: (!kinds.is_empty()).then(|| Arc::new(kinds)), filter: None, viewer }
}

pub(super) fn filtered(scope: Scope, filter: &v1::Filter) -> Scope {
    Scope { filter: Filter::compile(Some(filter)).unwrap().map(Arc::new), ..scope }
}

pub(super) fn exception(name: &str, generation: u64, phase: Phase) -> v1::Exception {
    v1::Exception { key: Some(key(name).to_wire()), generation, phase: phase.into(), ..Default::default() }
}

/// Agents, received, applied, failed, pending, degraded, failed for good.
pub(super) fn numbers(of: &v1::Propagation) -> [u32; 7] {
    [of.agents, of.received, of.applied, of.failed, of.pending, of.degraded, of.failed_for_good]
}

/// Why agents do not count, and how many.
pub(super) fn excluded(of: &v1::Propagation) -> Vec<(v1::exclusion::Reason, u32)> {
    of.excluded.iter().map(|exclusion| (exclusion.reason(), exclusion.count)).collect()
}

/// What a scope has of the last changes: checked against the fleet's own way to ask.
pub(super) fn last_change(land: &Land, scope: &Scope) -> Revision {
    let state = land.store.state();
    let StoreViewer::Agent { id, labels } = &scope.viewer else { panic!("an agent") };
    let parts = state.last_shared(Reach::of(scope), labels).max(state.last_own(Reach::of(scope), id));
    assert_eq!(parts, state.last_change(scope));
    parts
}
