use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use nimbus_core::{Digest, Epoch, Kind, ObjectKey, PublisherId};
use nimbus_store::{Op, Txn};
use nimbus_wire::v1::{self, Mode, bus_server::Bus as _};
use proptest::{prelude::*, sample::Index, test_runner::Config as Cases};
use tonic::{Code, Request, Status};

use crate::{
    config::Config,
    metrics::Metrics,
    reading::Reading,
    server::Bus,
    subscribe::{
        stream::FrameStream,
        tests::reader::{KIND, Read, Reader, next},
    },
    writing::OpenSync,
};

/// Ends that the bus remembers: few, so that some come from before its horizon.
const TOMBSTONES: usize = 2;

/// Sessions that it takes: not enough for everybody.
const SESSIONS: usize = 2;

const PUBLISHERS: [&str; 2] = ["p", "q"];
const READERS: [&str; 3] = ["a", "b", ""];

#[derive(Debug, Clone)]
enum Step {
    Put(usize, u8, u8),
    Delete(usize, u8),
    /// A publisher begins a sync.
    Begin(usize),
    /// It keeps everything that it has, and ends it.
    End(usize),
    /// Everything is forgotten, and every stream ends.
    Restart,
    Connect(usize, Offer),
    Read(usize),
    Leave(usize),
    /// Streams whose subscribers have come back are found to be dead.
    Bury,
    /// The bus tells everybody to come back later.
    Drain,
}

/// What a subscriber says to hold when it comes back.
#[derive(Debug, Clone, Copy)]
struct Offer {
    position: Where,
    root: bool,
    buckets: bool,
    origins: bool,
    nothing: bool,
}

#[derive(Debug, Clone, Copy)]
enum Where {
    Nowhere,
    There,
    /// A position that nobody can have.
    Zero,
    Above,
    OtherEpoch,
    OtherScope,
}

/// What the bus should think.
struct World {
    bus: Bus,
    epoch: u64,
    /// Of each publisher that has begun a sync, whether it has ended one.
    syncs: BTreeMap<usize, bool>,
    open: BTreeMap<usize, OpenSync>,
    /// Who has what.
    objects: BTreeMap<String, u8>,
    head: u64,
    /// The last change.
    last: u64,
    ends: VecDeque<u64>,
    horizon: u64,
    draining: bool,
    readers: Vec<Reader>,
    /// What each waits for, if it waits.
    waiting: Vec<Option<Expected>>,
    /// Streams whose subscribers have come back since.
    dead: Vec<FrameStream>,
    sessions: BTreeSet<u64>,
}

/// What a subscriber that waits has offered.
#[derive(Debug, Clone)]
struct Expected {
    root: Option<Digest>,
    buckets: bool,
    origins: BTreeSet<usize>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let position = prop_oneof![
        6 => Just(Where::There),
        3 => Just(Where::Nowhere),
        1 => Just(Where::Zero),
        1 => Just(Where::Above),
        1 => Just(Where::OtherEpoch),
        1 => Just(Where::OtherScope),
    ];
    let offer = (position, any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    let offer = offer.prop_map(|(position, root, buckets, origins, nothing)| Offer {
        position,
        root: root || buckets,
        buckets,
        origins,
        nothing,
    });
    let step = prop_oneof![
        6 => (0..2usize, 0..4u8, 0..3u8).prop_map(|(who, name, value)| Step::Put(who, name, value)),
        3 => (0..2usize, 0..4u8).prop_map(|(who, name)| Step::Delete(who, name)),
        2 => (0..2usize).prop_map(Step::Begin),
        4 => (0..2usize).prop_map(Step::End),
        1 => Just(Step::Restart),
        8 => (0..3usize, offer).prop_map(|(who, offer)| Step::Connect(who, offer)),
        6 => (0..3usize).prop_map(Step::Read),
        1 => (0..3usize).prop_map(Step::Leave),
        2 => Just(Step::Bury),
    ];
    let last = prop::option::weighted(0.2, Just(Step::Drain));
    (prop::collection::vec(step, 1..60), last, any::<Index>()).prop_map(|(mut steps, last, at)| {
        if let Some(drain) = last {
            steps.insert(at.index(steps.len()), drain);
        }
        steps
    })
}

fn bus(epoch: u64) -> Bus {
    let mut config = Config::new(Epoch(epoch), epoch);
    config.limits.store.tombstones = TOMBSTONES;
    config.limits.sessions = SESSIONS;
    Bus::new(config, Metrics::default())
}

fn kind() -> Kind {
    Kind::new(KIND).unwrap()
}

fn publisher(who: usize) -> PublisherId {
    PublisherId::new(PUBLISHERS[who]).unwrap()
}

/// Objects are named after their publishers, so that nobody writes what is another's.
fn name(who: usize, number: u8) -> String {
    format!("{}-{number}", PUBLISHERS[who])
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(kind(), "", name).unwrap()
}

fn owner(name: &str) -> usize {
    PUBLISHERS.iter().position(|who| name.starts_with(who)).unwrap()
}

// === impl World ===

impl World {
    fn new() -> Self {
        Self {
            bus: bus(1),
            epoch: 1,
            syncs: BTreeMap::new(),
            open: BTreeMap::new(),
            objects: BTreeMap::new(),
            head: 0,
            last: 0,
            ends: VecDeque::new(),
            horizon: 0,
            draining: false,
            readers: READERS.map(Reader::new).into(),
            waiting: vec![None; READERS.len()],
            dead: Vec::new(),
            sessions: BTreeSet::new(),
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Put(who, number, value) => {
                let name = name(who, number);
                let spec = prost_types::Any { type_url: format!("x/{KIND}"), value: vec![value] };
                let draft =
                    v1::Object { kind: KIND.to_owned(), name: name.clone(), spec: Some(spec), ..Default::default() };
                let draft = self.bus.inner.converter().draft(draft, "draft").unwrap();
                self.write(who, Op::Upsert(draft)).await;
                if self.objects.insert(name, value) != Some(value) {
                    self.head += 1;
                    self.last = self.head;
                }
            }
            Step::Delete(who, number) => {
                let name = name(who, number);
                self.write(who, Op::Delete(key(&name))).await;
                if self.objects.remove(&name).is_some() {
                    self.head += 1;
                    self.last = self.head;
                    self.ends.push_back(self.head);
                    if self.ends.len() > TOMBSTONES {
                        self.horizon = self.ends.pop_front().unwrap();
                    }
                }
            }
            Step::Begin(who) => {
                let sync = self.bus.begin_sync(&publisher(who), 0, &[kind()].into(), Vec::new()).await.unwrap();
                self.open.insert(who, sync);
                self.syncs.entry(who).or_default();
            }
            Step::End(who) => {
                if !self.open.contains_key(&who) {
                    Box::pin(self.take(Step::Begin(who))).await;
                }
                let mut sync = self.open.remove(&who).unwrap();
                let own: Vec<_> = self.objects.keys().filter(|name| owner(name) == who).map(|name| key(name)).collect();
                sync.keep(own).unwrap();
                assert_eq!(sync.end().await.unwrap().1.deleted, 0);
                self.syncs.insert(who, true);
            }
            Step::Restart => {
                self.open.clear();
                self.readers.iter_mut().for_each(Reader::leave);
                self.waiting.fill(None);
                self.dead.clear();
                self.epoch += 1;
                self.bus = bus(self.epoch);
                (self.head, self.last, self.horizon, self.draining) = (0, 0, 0, false);
                self.objects.clear();
                self.syncs.clear();
                self.ends.clear();
            }
            Step::Connect(who, offer) => self.connect(who, offer).await,
            Step::Read(who) => self.read(who).await,
            Step::Leave(who) => {
                self.readers[who].leave();
                self.waiting[who] = None;
            }
            Step::Bury => self.bury().await,
            Step::Drain => {
                self.bus.inner.sessions.drain(Duration::from_secs(1), "it is stopped");
                self.draining = true;
            }
        }
    }

    async fn write(&self, who: usize, op: Op) {
        let txn = Txn { publisher: publisher(who), fence: 0, leases: Vec::new(), steps: vec![op.into()] };
        self.bus.submit(&txn).await.unwrap();
    }

    /// Whether a subscriber that holds objects of these publishers is missing nothing.
    fn is_settled(&self, origins: &BTreeSet<usize>) -> bool {
        let complete = !self.syncs.is_empty() && self.syncs.values().all(|ended| *ended);
        complete && origins.iter().all(|origin| self.syncs.get(origin) == Some(&true))
    }

    /// The digest of what there is for a subscriber.
    fn root(&self, who: usize) -> Digest {
        let state = self.bus.store().state();
        let kind = kind();
        let records: Vec<_> = state.kind(&kind).into_iter().flat_map(|kind| kind.all().iter(None)).collect();
        let names: Vec<_> = records.iter().map(|record| record.key().name().to_owned()).collect();
        assert_eq!(names, self.objects.keys().cloned().collect::<Vec<_>>(), "the model is another collection");
        assert_eq!(state.head().0, self.head, "the model counts differently");
        records.iter().map(|record| record.leaf(READERS[who].is_empty())).collect()
    }

    async fn connect(&mut self, who: usize, offer: Offer) {
        let reader = &self.readers[who];
        let holds = !offer.nothing && (reader.position.is_some() || !reader.held.is_empty());
        let scope = reader.position.map_or(0, |position| position.scope);
        let at = |epoch, revision, scope| Some(v1::Position { epoch, revision, scope });
        let position = match offer.position {
            Where::Nowhere => None,
            Where::There => reader.position,
            Where::Zero => at(self.epoch, 0, scope),
            Where::Above => at(self.epoch, self.head + 1, scope),
            Where::OtherEpoch => at(self.epoch + 100, 1, scope),
            Where::OtherScope => at(self.epoch, self.head, scope ^ 1),
        };
        let (position, buckets) = (position.filter(|_| holds), reader.buckets());
        let root = (offer.root && holds).then(|| buckets.root());
        let held: BTreeSet<usize> = reader.held.keys().map(|name| owner(name)).collect();
        let mut origins = if offer.origins && holds { held } else { BTreeSet::new() };
        let origin = |who: &usize| v1::Origin { manager: PUBLISHERS[*who].to_owned(), kinds: vec![KIND.to_owned()] };
        let resume = holds.then(|| v1::Resume {
            position,
            root: root.map(|root| root.as_bytes().to_vec()).unwrap_or_default().into(),
            buckets: if offer.buckets { buckets.to_vec().into() } else { Vec::new().into() },
            origins: origins.iter().map(origin).collect(),
        });
        let before = reader.session;
        let replaces = reader.is_connected();
        let same_agent = replaces && !READERS[who].is_empty();

        let live = self.readers.iter().filter(|reader| reader.is_connected()).count() + self.dead.len();
        let is_full = live >= 2 * SESSIONS || (live >= SESSIONS && !same_agent);
        let answer = self.readers[who].connect(&self.bus.inner, resume);
        let old = match answer {
            Err(status) => {
                let code = if self.draining { Code::Unavailable } else { Code::ResourceExhausted };
                assert!(self.draining || is_full, "nothing speaks against it, but {status}");
                assert_eq!(status.code(), code, "{status}");
                return;
            }
            Ok(old) => old,
        };
        assert!(!self.draining && !is_full, "there is no room for it");
        assert!(self.sessions.insert(self.readers[who].session), "a session is given twice");
        self.waiting[who] = None;

        // Of an agent, the older session ends; observers may have as many as they like.
        assert_eq!(old.is_some(), replaces);
        if let Some(old) = old {
            self.dead.push(old);
            let is_over = !READERS[who].is_empty();
            let answer = self.report(before).await;
            assert_eq!(answer.err().map(|status| status.code()), is_over.then_some(Code::NotFound));
        }
        assert!(self.report(self.readers[who].session).await.is_ok());

        // The answer, as the protocol says.
        let expected = Expected { root, buckets: offer.buckets && holds, origins: origins.clone() };
        let is_here = |position: &v1::Position| position.epoch == self.epoch;
        let now = self.root(who);
        let goes_on = position.filter(is_here).is_some_and(|position| {
            let is_scope = !matches!(offer.position, Where::OtherScope) && scope != 0;
            let in_reach = (1..=self.head).contains(&position.revision) && position.revision >= self.horizon;
            // If something has changed since, nobody compares: what comes next will.
            is_scope && in_reach && (self.last > position.revision || root.is_none_or(|root| root == now))
        });
        let is_of_this_history = position
            .filter(is_here)
            .is_some_and(|position| (1..=self.head).contains(&position.revision));
        if is_of_this_history {
            origins.clear();
        }
        let expected = Expected { origins, ..expected };
        let mode = if goes_on {
            Mode::Delta
        } else if holds && !self.is_settled(&expected.origins) {
            self.waiting[who] = Some(expected);
            Mode::Waiting
        } else {
            answered(&expected, now)
        };
        if offer.nothing {
            self.readers[who].held.clear();
            self.readers[who].position = None;
        }
        let read = self.readers[who].read().await;
        let welcomed = read.modes.clone();
        assert_eq!(welcomed, [mode], "{offer:?} at {position:?}, of {} and {}", self.epoch, self.head);
        self.check(who, &read);
    }

    async fn read(&mut self, who: usize) {
        if !self.readers[who].is_connected() {
            return;
        }
        let now = self.root(who);
        let mut waiting = self.waiting[who].take();
        let settled = waiting.take_if(|expected| self.is_settled(&expected.origins));
        self.waiting[who] = waiting;
        let answered = settled.map(|expected| answered(&expected, now));
        let read = self.readers[who].read().await;
        if self.draining {
            let end = read.end.expect("everybody is sent away");
            assert_eq!(end.code(), Code::Unavailable, "{end}");
            self.waiting[who] = None;
            return;
        }
        assert_eq!(read.modes, answered.into_iter().collect::<Vec<_>>());
        self.check(who, &read);
    }

    /// Who has read everything holds everything, and knows it; who waits was sent nothing.
    fn check(&self, who: usize, read: &Read) {
        assert!(read.end.is_none(), "{:?}", read.end);
        if self.waiting[who].is_some() {
            assert_eq!(read.events, 0, "who waits is sent nothing");
            return;
        }
        let reader = &self.readers[who];
        assert_eq!(reader.root(), self.root(who), "{} holds something else", reader.agent);
        let is_at_head = reader.position.is_some_and(|position| position.epoch == self.epoch);
        assert_eq!(is_at_head, !reader.is_in_snapshot(), "a position is what a snapshot ends with");
        // What came and went unseen is not told: only the next bookmark goes beyond it.
        if let Some(position) = reader.position.filter(|_| read.events > 0) {
            assert!(position.revision >= self.last, "it has read everything, but is at {}", position.revision);
        }
    }

    async fn report(&self, session: u64) -> Result<(), Status> {
        let report = v1::ReportRequest { session, sequence: 1, full: true, ..v1::ReportRequest::default() };
        Reading(self.bus.inner.clone()).report_once(Request::new(report)).await.map(drop)
    }

    /// What a superseded stream still had to say is not the business of the newer one; then it ends, and says why.
    async fn bury(&mut self) {
        for mut dead in std::mem::take(&mut self.dead) {
            let mut end = None;
            while let Some(one) = next(&mut dead).await {
                end = one.err();
                if end.is_some() {
                    break;
                }
            }
            // Those of observers were not superseded.
            let codes = end.map(|status| status.code());
            let allowed = [Some(Code::Aborted), None, self.draining.then_some(Code::Unavailable)];
            assert!(allowed.contains(&codes), "{codes:?}");
        }
    }
}

/// How a subscriber is answered whose position does not help, when nothing is missing.
fn answered(expected: &Expected, now: Digest) -> Mode {
    match expected.root {
        Some(root) if root == now => Mode::Unchanged,
        _ if expected.buckets => Mode::Digest,
        _ => Mode::Snapshot,
    }
}

fn run(steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new();
        for step in steps {
            world.take(step).await;
        }
    });
}

proptest! {
    #![proptest_config(Cases { cases: 400, ..Cases::default() })]

    /// Delta, unchanged, digest, snapshot or wait; room or none; and of two sessions of one agent, the newer one.
    #[test]
    fn every_subscription_is_answered_as_the_protocol_says(steps in steps()) {
        run(steps);
    }
}

/// A reader in a snapshot that could not end yet missed the end of an object, and the bus forgot it: the snapshot begins again, and
/// what the reader holds beside it is swept when it ends. The model thought that it should be gone at once.
#[test]
fn who_missed_an_end_in_a_snapshot_begins_again_and_sweeps_at_its_end() {
    let fresh = || Offer { position: Where::There, root: false, buckets: false, origins: false, nothing: false };
    let mut steps = vec![
        Step::Put(0, 2, 0),
        Step::Put(1, 3, 0),
        Step::Connect(2, fresh()),
        Step::Put(0, 3, 0),
        Step::Put(0, 0, 0),
        Step::Delete(0, 2),
        Step::Delete(0, 3),
        Step::Delete(1, 3),
        Step::Read(2),
    ];
    run(steps.clone());
    steps.extend([Step::End(0), Step::Read(2)]);
    run(steps);
}
