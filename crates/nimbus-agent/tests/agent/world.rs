//! A bus, its publisher, and a network of memory between it and its agents.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use hyper_util::rt::TokioIo;
use nimbus_agent::{Agent, AgentBuilder, AgentStatus, Connector, Handle, Io, Link};
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::{Epoch, Kind, ObjectKey, Spec};
use nimbus_wire::v1::{self, bus_client::BusClient, fleet_client::FleetClient, publisher_client::PublisherClient};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::{
    io::DuplexStream,
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use crate::recorder::{Alpha, Beta, Recorder};

/// A network of memory. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Net(Arc<NetState>);

#[derive(Default)]
struct NetState {
    bus: Mutex<Option<mpsc::Sender<io::Result<DuplexStream>>>>,
    pipes: Mutex<Vec<JoinHandle<()>>>,
    /// Raised: connections carry nothing any more, and say nothing about it.
    frozen: watch::Sender<u64>,
    connects: AtomicU64,
}

/// A bus that can be stopped and started again.
pub(crate) struct World {
    pub(crate) net: Net,
    epoch: Epoch,
    serving: Option<(JoinHandle<()>, oneshot::Sender<()>)>,
    pub(crate) bus: Bus,
    pub(crate) registry: Registry,
    config: fn(&mut Config),
}

/// An agent that runs.
pub(crate) struct Running {
    pub(crate) handle: Handle,
    pub(crate) task: JoinHandle<Result<(), nimbus_agent::AgentError>>,
    pub(crate) stop: oneshot::Sender<()>,
}

/// An object to publish.
#[derive(Debug, Clone)]
pub(crate) struct Draft(pub(crate) v1::Object);

pub(crate) const PUBLISHER: &str = "controller";

// === impl Net ===

impl Net {
    /// Cuts every connection.
    pub(crate) fn cut(&self) {
        self.0.pipes.lock().drain(..).for_each(|pipe| pipe.abort());
    }

    /// Half-opens every connection: nothing arrives any more, and nobody is told.
    pub(crate) fn freeze(&self) {
        self.0.frozen.send_modify(|times| *times += 1);
    }

    /// Connections that were asked for so far.
    pub(crate) fn connects(&self) -> u64 {
        self.0.connects.load(Ordering::Relaxed)
    }

    async fn dial(&self) -> io::Result<DuplexStream> {
        self.0.connects.fetch_add(1, Ordering::Relaxed);
        let bus = self.0.bus.lock().clone();
        let bus = bus.ok_or_else(|| io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens"))?;
        let (near, mut near_end) = tokio::io::duplex(64 << 10);
        let (far, mut far_end) = tokio::io::duplex(64 << 10);
        let mut frozen = self.0.frozen.subscribe();
        let pipe = tokio::spawn(async move {
            tokio::select! {
                // It ends with either end.
                _ = tokio::io::copy_bidirectional(&mut near_end, &mut far_end) => {}
                _ = frozen.changed() => std::future::pending().await,
            }
        });
        self.0.pipes.lock().push(pipe);
        bus.send(Ok(far))
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::ConnectionRefused, "the bus is gone"))?;
        Ok(near)
    }
}

impl Connector for Net {
    fn connect(&self, _host: &str, _port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let net = self.clone();
        Box::pin(async move { Ok(Box::new(net.dial().await?) as Box<dyn Io>) })
    }
}

// === impl World ===

impl World {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(config: fn(&mut Config)) -> Self {
        let mut world = Self {
            net: Net::default(),
            epoch: Epoch(0),
            serving: None,
            bus: Bus::new(Config::new(Epoch(0), 0), Metrics::default()),
            registry: Registry::default(),
            config,
        };
        world.begin();
        world
    }

    /// Kills the bus: connections break, and everything in it is forgotten.
    pub(crate) fn kill(&mut self) {
        *self.net.0.bus.lock() = None;
        self.net.cut();
        if let Some((serving, _)) = self.serving.take() {
            serving.abort();
        }
    }

    /// Starts another bus, which knows nothing.
    pub(crate) fn begin(&mut self) {
        self.epoch = Epoch(self.epoch.0 + 1);
        let mut config = Config::new(self.epoch, self.epoch.0);
        (self.config)(&mut config);
        self.registry = Registry::default();
        self.bus = Bus::new(config, Metrics::new(&mut self.registry));
        let (connections, incoming) = mpsc::channel(64);
        let (stop, stopped) = oneshot::channel();
        *self.net.0.bus.lock() = Some(connections);
        let bus = self.bus.clone();
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            bus.serve(ReceiverStream::new(incoming), stopped).await.unwrap();
        });
        self.serving = Some((serving, stop));
    }

    /// Asks the bus to stop, as an operator would.
    pub(crate) fn drain(&mut self) {
        if let Some((serving, stop)) = self.serving.take() {
            stop.send(()).expect("it is being served");
            drop(serving);
        }
    }

    async fn channel(&self) -> Channel {
        let net = self.net.clone();
        let connect = tower::service_fn(move |_| {
            let net = net.clone();
            async move { net.dial().await.map(TokioIo::new) }
        });
        Endpoint::from_static("http://bus").connect_with_connector(connect).await.unwrap()
    }

    pub(crate) async fn bus_client(&self) -> BusClient<Channel> {
        BusClient::new(self.channel().await)
    }

    pub(crate) async fn fleet(&self) -> FleetClient<Channel> {
        FleetClient::new(self.channel().await)
    }

    /// One transaction.
    pub(crate) async fn apply(&self, ops: Vec<v1::Op>) -> u64 {
        let request = v1::ApplyRequest { publisher: PUBLISHER.into(), ops, ..Default::default() };
        PublisherClient::new(self.channel().await)
            .apply(request)
            .await
            .unwrap()
            .into_inner()
            .revision
    }

    pub(crate) async fn put(&self, draft: Draft) -> u64 {
        self.apply(vec![put(draft)]).await
    }

    pub(crate) async fn delete(&self, key: ObjectKey) -> u64 {
        self.apply(vec![delete(&key)]).await
    }

    /// A sync of everything.
    pub(crate) async fn sync(&self, drafts: Vec<Draft>) {
        let items = v1::SyncItems { objects: drafts.into_iter().map(|draft| draft.0).collect() };
        let steps = [begin(), v1::sync_request::Step::Items(items), v1::sync_request::Step::End(v1::SyncEnd {})];
        let steps = steps.map(|step| v1::SyncRequest { step: Some(step) });
        PublisherClient::new(self.channel().await).sync(tokio_stream::iter(steps)).await.unwrap();
    }

    /// A bus metric, as Prometheus would see it.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(ToOwned::to_owned));
        value.map_or(0, |value| value.parse().unwrap())
    }

    /// An agent that handles both kinds with the recorder.
    pub(crate) fn builder(&self, id: &str, recorder: &Recorder) -> AgentBuilder {
        Agent::builder(id, "http://bus:7400")
            .connector(self.net.clone())
            .handle::<Alpha, _>(recorder.clone())
            .handle::<Beta, _>(recorder.clone())
            .seed(7)
    }

    pub(crate) fn run(&self, builder: AgentBuilder) -> Running {
        let agent = builder.build().unwrap();
        let handle = agent.handle();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(agent.run_until(async { drop(stopped.await) }));
        Running { handle, task, stop }
    }
}

fn begin() -> v1::sync_request::Step {
    let kinds = vec![Alpha::kind().to_string(), Beta::kind().to_string()];
    v1::sync_request::Step::Begin(v1::SyncBegin { publisher: PUBLISHER.into(), fence: 0, kinds, leases: Vec::new() })
}

// === impl Running ===

impl Running {
    /// Waits until the agent has everything, and everything is applied.
    pub(crate) async fn settled(&mut self) -> AgentStatus {
        self.until(|status| status.link == Link::InSync && status.unfinished == 0).await
    }

    pub(crate) async fn until(&mut self, wanted: impl FnMut(&AgentStatus) -> bool) -> AgentStatus {
        self.handle.wait_until(wanted).await.unwrap()
    }

    /// Stops it as an operator would.
    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("it runs");
        self.task.await.unwrap().unwrap();
    }

    /// Ends it without a word, as a crash would.
    pub(crate) async fn crash(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

// === impl Draft ===

impl Draft {
    /// With a strong reference.
    pub(crate) fn needs(mut self, key: &ObjectKey) -> Self {
        let v1::Key { kind, namespace, name } = key.to_wire();
        self.0.refs.push(v1::Reference { kind, namespace, name, ..v1::Reference::default() });
        self
    }

    /// For agents with these labels only.
    pub(crate) fn only(mut self, selector: &str) -> Self {
        let to = v1::audience::To::Selector(selector.to_owned());
        self.0.audience = Some(v1::Audience { to: Some(to) });
        self
    }
}

pub(crate) fn alpha(name: &str, value: &str) -> Draft {
    draft(name, &Alpha { value: value.to_owned() })
}

pub(crate) fn beta(name: &str, value: &str) -> Draft {
    draft(name, &Beta { value: value.to_owned() })
}

fn draft<K: Spec>(name: &str, spec: &K) -> Draft {
    Draft(v1::Object { name: name.to_owned(), spec: Some(spec.pack()), ..Default::default() })
}

pub(crate) fn alpha_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("t.v1.Alpha").unwrap(), "", name).unwrap()
}

pub(crate) fn beta_key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("t.v1.Beta").unwrap(), "", name).unwrap()
}

pub(crate) fn put(draft: Draft) -> v1::Op {
    v1::Op { op: Some(v1::op::Op::Upsert(draft.0)), ..Default::default() }
}

pub(crate) fn delete(key: &ObjectKey) -> v1::Op {
    v1::Op { op: Some(v1::op::Op::Delete(key.to_wire())), ..Default::default() }
}
