//! A bus, its publisher and a few clients, and what can happen to them.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::{AgentId, Epoch, Kind, Labels};
use nimbus_store::{Filter, Record, Scope, State, Viewer};
use nimbus_wire::v1::{self, publisher_client::PublisherClient};
use proptest::prelude::*;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Endpoint};

use crate::client::{Client, Wish};

pub(crate) const KINDS: [&str; 2] = ["t.v1.Alpha", "t.v1.Beta"];
const NAMES: u8 = 6;
pub(crate) const PUBLISHER: &str = "controller";

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A transaction; `true` in front: an upsert.
    Write(Vec<(bool, Draft)>),
    /// A client reads so many frames, as far as there are any.
    Read(usize, u8),
    /// A client loses its connection and comes back.
    Cut(usize, Offer),
    /// A client wants something else.
    Rescope(usize, Wish),
    /// The bus forgets its tombstones.
    Forget,
    /// The bus is killed, comes back empty, and is refilled while clients come back.
    Restart(Offer),
    /// What is there is published again.
    Again,
}

/// What a client offers when it comes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) position: bool,
    pub(crate) digests: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Draft {
    kind: u8,
    name: u8,
    content: u8,
    label: u8,
    audience: u8,
    refers: Option<u8>,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let draft = (0..2u8, 0..NAMES, any::<u8>(), 0..3u8, 0..6u8, proptest::option::of(0..NAMES)).prop_map(
        |(kind, name, content, label, audience, refers)| Draft { kind, name, content, label, audience, refers },
    );
    let offer = (any::<bool>(), any::<bool>()).prop_map(|(position, digests)| Offer { position, digests });
    let wish = (0..4u8, 0..3u8, 0..3u8).prop_map(|(kinds, label, filter)| Wish { kinds, label, filter });
    let step = prop_oneof![
        8 => proptest::collection::vec((proptest::bool::weighted(0.7), draft), 1..5).prop_map(Step::Write),
        6 => (0..4usize, 1..6u8).prop_map(|(client, frames)| Step::Read(client, frames)),
        2 => (0..4usize, offer.clone()).prop_map(|(client, offer)| Step::Cut(client, offer)),
        1 => (0..4usize, wish).prop_map(|(client, wish)| Step::Rescope(client, wish)),
        1 => Just(Step::Forget),
        1 => offer.prop_map(Step::Restart),
        1 => Just(Step::Again),
    ];
    proptest::collection::vec(step, 10..60)
}

pub(crate) struct World {
    bus: Option<Running>,
    clients: Vec<Client>,
    /// What the publisher wants to exist: it survives restarts of the bus.
    wanted: BTreeMap<(String, String), v1::Object>,
    lives: u64,
    history: History,
}

/// All states that the bus has had, by epoch and revision.
#[derive(Default)]
pub(crate) struct History(BTreeMap<(u64, u64), Arc<State>>);

struct Running {
    bus: Bus,
    address: SocketAddr,
    publisher: PublisherClient<Channel>,
    kill: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let mut world =
            Self { bus: None, clients: Vec::new(), wanted: BTreeMap::new(), lives: 0, history: History::default() };
        world.start(1).await;
        world.sync(usize::MAX).await;
        let wishes = [(0, 0, 0), (3, 1, 0), (0, 2, 1), (3, 0, 2)];
        for (at, (kinds, label, filter)) in wishes.into_iter().enumerate() {
            let agent = (at > 0).then(|| format!("agent-{at}"));
            let mut client = Client::new(agent, Wish { kinds, label, filter });
            client.connect(world.address(), Offer { position: true, digests: true }).await;
            world.clients.push(client);
        }
        world
    }

    pub(crate) async fn take(&mut self, step: Step) {
        match step {
            Step::Write(ops) => self.write(ops).await,
            Step::Read(client, frames) => self.read(client, usize::from(frames)).await,
            Step::Cut(client, offer) => {
                let address = self.address();
                self.clients[client].connect(address, offer).await;
            }
            Step::Rescope(client, wish) => self.clients[client].rescope(wish).await,
            Step::Forget => {
                let store = self.running().bus.store().clone();
                store.trim(store.state().head());
                self.keep();
            }
            Step::Restart(offer) => self.restart(offer).await,
            Step::Again => self.again().await,
        }
    }

    /// Reads to the end: everybody must hold exactly its part.
    pub(crate) async fn converge(&mut self) {
        let (epoch, head) = self.head();
        for client in &mut self.clients {
            client.read_to(&self.history, epoch, head).await;
        }
    }

    async fn write(&mut self, ops: Vec<(bool, Draft)>) {
        let mut names = std::collections::BTreeSet::new();
        let mut next = self.wanted.clone();
        let ops = ops.into_iter().filter(|(_, draft)| names.insert((draft.kind, draft.name)));
        let ops: Vec<v1::Op> = ops.map(|(upsert, draft)| self.op(&mut next, upsert, &draft)).collect();
        let before = self.head();
        let request = v1::ApplyRequest { publisher: PUBLISHER.into(), ops, ..Default::default() };
        match self.running().publisher.apply(request).await {
            Ok(answer) => {
                assert!(answer.into_inner().revision >= before.1);
                self.wanted = next;
            }
            // A cycle of references: nothing has changed.
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
                assert!(status.message().contains("cycle"), "{status}");
                assert_eq!(self.head(), before);
            }
        }
        self.keep();
    }

    fn op(&mut self, wanted: &mut BTreeMap<(String, String), v1::Object>, upsert: bool, draft: &Draft) -> v1::Op {
        let kind = KINDS[usize::from(draft.kind)];
        let name = format!("n{}", draft.name);
        let id = (kind.to_owned(), name.clone());
        let op = if upsert {
            let before = wanted.get(&id);
            let spec =
                prost_types::Any { type_url: format!("type.googleapis.com/{kind}"), value: vec![draft.content; 3] };
            let generation = match before {
                None => 1,
                Some(before) => before.generation + u64::from(before.spec.as_ref() != Some(&spec)),
            };
            let uid = before.map_or_else(
                || {
                    self.lives += 1;
                    format!("life-{}", self.lives)
                },
                |before| before.uid.clone(),
            );
            let object = v1::Object {
                kind: kind.into(),
                name,
                uid,
                generation,
                labels: [("tier".to_owned(), format!("t{}", draft.label))].into(),
                refs: draft.refers.iter().map(|to| reference(*to)).collect(),
                audience: audience(draft.audience),
                spec: Some(spec),
                ..Default::default()
            };
            wanted.insert(id, object.clone());
            v1::op::Op::Upsert(object)
        } else {
            wanted.remove(&id);
            v1::op::Op::Delete(v1::Key { kind: kind.into(), name, ..Default::default() })
        };
        v1::Op { op: Some(op), ..Default::default() }
    }

    async fn read(&mut self, client: usize, frames: usize) {
        for _ in 0..frames {
            let read = self.clients[client].read(&self.history, Duration::from_millis(3));
            if !read.await {
                break;
            }
        }
    }

    /// Publishing what is there makes no revision and no traffic.
    async fn again(&mut self) {
        let before = self.head();
        let upserts = self
            .wanted
            .values()
            .cloned()
            .map(|object| v1::Op { op: Some(v1::op::Op::Upsert(object)), ..Default::default() });
        let request = v1::ApplyRequest { publisher: PUBLISHER.into(), ops: upserts.collect(), ..Default::default() };
        let answer = self.running().publisher.apply(request).await.unwrap().into_inner();
        assert!(answer.outcomes.iter().all(|outcome| outcome.result() == v1::Result::Unchanged), "{answer:?}");
        assert_eq!(self.head(), before);
    }

    /// While the bus is being refilled nobody is made to delete anything, and who held all of it is sent nothing.
    async fn restart(&mut self, offer: Offer) {
        let (epoch, head) = self.head();
        for client in &mut self.clients {
            client.read_to(&self.history, epoch, head).await;
        }
        let holds: Vec<_> = self.clients.iter().map(|client| client.held.clone()).collect();
        self.stop().await;
        self.start(epoch + 1).await;
        let address = self.address();
        self.sync(self.wanted.len() / 2).await;
        for client in &mut self.clients {
            client.connect(address, offer).await;
            while client.read(&self.history, Duration::from_millis(3)).await {}
            assert!(client.is_waiting(), "a half-filled bus answered");
        }
        for (client, held) in self.clients.iter().zip(&holds) {
            assert!(client.held == *held, "a half-filled bus changed what a client holds");
        }
        self.sync(usize::MAX).await;
        let (epoch, head) = self.head();
        for (client, held) in self.clients.iter_mut().zip(&holds) {
            client.events = 0;
            client.read_to(&self.history, epoch, head).await;
            assert!(!offer.digests || client.events == 0, "nothing had changed, but {} events came", client.events);
            let now: Vec<_> = client.held.iter().map(|(key, held)| (key.clone(), held.digest)).collect();
            let then: Vec<_> = held.iter().map(|(key, held)| (key.clone(), held.digest)).collect();
            assert_eq!(now, then);
        }
    }

    /// The publisher says what it wants to exist: all of it, or so many objects and then it dies.
    async fn sync(&mut self, items: usize) {
        let step = |step| v1::SyncRequest { step: Some(step) };
        let begin = v1::SyncBegin {
            publisher: PUBLISHER.into(),
            fence: 0,
            kinds: KINDS.map(Into::into).into(),
            leases: vec![],
        };
        let objects: Vec<_> = self.wanted.values().take(items).cloned().collect();
        let mut steps = vec![step(v1::sync_request::Step::Begin(begin))];
        steps.push(step(v1::sync_request::Step::Items(v1::SyncItems { objects })));
        if items == usize::MAX {
            steps.push(step(v1::sync_request::Step::End(v1::SyncEnd {})));
        }
        let answer = self.running().publisher.sync(tokio_stream::iter(steps)).await;
        if items == usize::MAX {
            answer.unwrap();
        } else {
            assert_eq!(answer.unwrap_err().code(), tonic::Code::Aborted);
        }
        self.keep();
    }

    async fn start(&mut self, epoch: u64) {
        let config = Config {
            bookmark_interval: Duration::from_millis(40),
            drain: Duration::from_millis(1),
            limits: nimbus_bus::Limits { frame_bytes: 256, ..Default::default() },
            ..Config::new(Epoch(epoch), epoch)
        };
        let bus = Bus::new(config, Metrics::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (kill, killed) = oneshot::channel();
        let serving = bus.clone().serve(TcpListenerStream::new(listener), async {
            drop(killed.await);
        });
        let task = tokio::spawn(async { serving.await.unwrap() });
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
        let publisher = PublisherClient::new(channel);
        self.bus = Some(Running { bus, address, publisher, kill: Some(kill), task });
        self.keep();
    }

    async fn stop(&mut self) {
        let mut running = self.bus.take().unwrap();
        drop(running.kill.take());
        running.task.await.unwrap();
    }

    fn running(&mut self) -> &mut Running {
        self.bus.as_mut().unwrap()
    }

    fn address(&mut self) -> SocketAddr {
        self.running().address
    }

    fn head(&mut self) -> (u64, u64) {
        let state = self.running().bus.store().state();
        (state.epoch().0, state.head().0)
    }

    fn keep(&mut self) {
        let state = self.running().bus.store().state();
        self.history.0.insert((state.epoch().0, state.head().0), state);
    }
}

impl History {
    /// What a client with that wish should hold at that revision.
    pub(crate) fn expected(&self, epoch: u64, revision: u64, agent: Option<&str>, wish: Wish) -> Vec<Arc<Record>> {
        let (_, state) = self.0.range(..=(epoch, revision)).next_back().unwrap();
        assert_eq!(state.epoch().0, epoch);
        let scope = wish.scope(agent);
        let visible =
            |record: &&Arc<Record>| scope.admits(record, |filter| filter.passes(record, &nimbus_store::NoFields));
        state
            .kinds()
            .flat_map(|(_, kind)| kind.all().iter(None).filter(visible).cloned().collect::<Vec<_>>())
            .collect()
    }
}

impl Wish {
    pub(crate) fn scope(self, agent: Option<&str>) -> Scope {
        let kinds = (self.kinds > 0).then(|| self.kind_names().iter().map(|kind| Kind::new(kind).unwrap()).collect());
        let labels = Labels::new(&self.labels()).unwrap();
        let agent = agent.map(|id| Viewer::Agent { id: AgentId::new(id).unwrap(), labels });
        let filter = Filter::compile(self.filter().as_ref()).unwrap().map(Arc::new);
        Scope { kinds: kinds.map(Arc::new), filter, viewer: agent.unwrap_or(Viewer::Observer) }
    }
}

fn reference(to: u8) -> v1::Reference {
    v1::Reference { kind: KINDS[1].into(), name: format!("n{to}"), ..Default::default() }
}

fn audience(number: u8) -> Option<v1::Audience> {
    use v1::audience::To;
    let to = match number {
        0 | 1 => return None,
        2 => To::Selector("zone=z1".into()),
        3 => To::Selector("zone in (z0,z2)".into()),
        4 => To::Agents(v1::Agents { ids: vec!["agent-1".into(), "agent-3".into()] }),
        _ => To::Agents(v1::Agents { ids: vec!["agent-2".into(), "agent-3".into(), "never-seen".into()] }),
    };
    Some(v1::Audience { to: Some(to) })
}
