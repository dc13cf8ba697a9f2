//! A bus, a network of memory, and somebody who watches.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use ctkit::{Change, CommitError, Connector, Event, Io, OpenSync as _, Record, Remote, Source, Target, WatchError};
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::{
    Annotations, Audience, Epoch, Finalizers, Kind, Labels, ObjectKey, Position, PublisherId, Revision, Selector,
};
use nimbus_store::{Committed, Draft, FinalizersDraft, Op, Step, Txn};
use parking_lot::Mutex;
use prost::Message as _;
use prost_types::Any;
use tokio::{
    io::DuplexStream,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::{Stream, StreamExt as _, wrappers::ReceiverStream};

/// A network of memory. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Net(Arc<NetState>);

#[derive(Default)]
struct NetState {
    listener: Mutex<Option<mpsc::Sender<io::Result<DuplexStream>>>>,
    pipes: Mutex<Vec<JoinHandle<()>>>,
    /// Raised: connections carry nothing any more, and say nothing about it.
    frozen: watch::Sender<u64>,
}

/// A bus that can be stopped and started again.
pub(crate) struct World {
    pub(crate) net: Net,
    pub(crate) bus: Bus,
    epoch: Epoch,
    serving: Option<JoinHandle<()>>,
}

/// Somebody who watches a kind, and what they have been told.
pub(crate) struct Watcher {
    events: Pin<Box<dyn Stream<Item = Result<Event, WatchError>> + Send>>,
    pub(crate) view: BTreeMap<ObjectKey, Arc<Record>>,
    pub(crate) position: Option<Position>,
    /// Objects of lists, and changes, so far.
    pub(crate) listed: usize,
    pub(crate) lists: usize,
    pub(crate) puts: usize,
    pub(crate) removals: usize,
    listing: BTreeSet<ObjectKey>,
    /// The history that the revision of each object is of.
    epochs: BTreeMap<ObjectKey, Epoch>,
}

pub(crate) const PUBLISHER: &str = "controller";

/// A host where nobody listens.
pub(crate) const NOWHERE: &str = "nowhere";

/// A host that does not answer.
pub(crate) const SILENT: &str = "silent";

/// Nothing that is going to happen takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nothing happens for this long: nothing will.
pub(crate) const QUIET: Duration = Duration::from_secs(40);

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

    /// Whoever connects from now on gets to this listener.
    pub(crate) fn listen(&self) -> ReceiverStream<io::Result<DuplexStream>> {
        let (connections, incoming) = mpsc::channel(64);
        *self.0.listener.lock() = Some(connections);
        ReceiverStream::new(incoming)
    }

    /// Nobody listens any more.
    pub(crate) fn close(&self) {
        *self.0.listener.lock() = None;
    }

    async fn dial(&self) -> io::Result<DuplexStream> {
        let refused = |why: &'static str| io::Error::new(io::ErrorKind::ConnectionRefused, why);
        let listener = self.0.listener.lock().clone();
        let listener = listener.ok_or_else(|| refused("nobody listens"))?;
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
        listener.send(Ok(far)).await.map_err(|_| refused("the bus is gone"))?;
        Ok(near)
    }
}

impl Connector for Net {
    fn connect(&self, host: &str, _port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let (net, host) = (self.clone(), host.to_owned());
        Box::pin(async move {
            match &*host {
                NOWHERE => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens")),
                SILENT => std::future::pending().await,
                _ => Ok(Box::new(net.dial().await?) as Box<dyn Io>),
            }
        })
    }
}

// === impl World ===

impl World {
    pub(crate) fn start() -> Self {
        let bus = Bus::new(Config::new(Epoch(0), 0), Metrics::default());
        let mut world = Self { net: Net::default(), bus, epoch: Epoch(0), serving: None };
        world.begin();
        world
    }

    /// A bus whose kind is complete, and empty.
    pub(crate) async fn synced() -> Self {
        let world = Self::start();
        world.sync(&[]).await;
        world
    }

    /// Kills the bus: connections break, and everything in it is forgotten.
    pub(crate) fn kill(&mut self) {
        self.net.close();
        self.net.cut();
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }

    /// Starts another bus, which knows nothing.
    pub(crate) fn begin(&mut self) {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.bus = Bus::new(Config::new(self.epoch, self.epoch.0), Metrics::default());
        let (bus, incoming) = (self.bus.clone(), self.net.listen());
        let serving = async move { bus.serve(incoming, std::future::pending()).await.unwrap() };
        self.serving = Some(tokio::spawn(serving));
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::builder("http://bus:7400").connector(self.net.clone()).seed(7).build().unwrap()
    }

    pub(crate) fn watch(&self) -> Watcher {
        Watcher::new(self.remote().watch(&kind(), None))
    }

    /// One transaction, past the network.
    pub(crate) fn write(&self, ops: Vec<Op>) -> Committed {
        self.bus.store().commit(&txn(ops)).unwrap()
    }

    /// A sync of everything, over the network.
    pub(crate) async fn sync(&self, drafts: &[Draft]) {
        let remote = self.remote();
        let sync = remote.begin_sync(publisher(), 0, BTreeSet::from([kind()]), Vec::new()).await.unwrap();
        for draft in drafts {
            Target::commit(&remote, txn(vec![Op::Upsert(draft.clone())])).await.unwrap();
        }
        sync.end().await.unwrap();
    }

    /// What there is, with the revisions.
    pub(crate) fn holds(&self) -> BTreeMap<ObjectKey, (Revision, Vec<u8>)> {
        let state = self.bus.store().state();
        let Some(of) = state.kind(&kind()) else { return BTreeMap::new() };
        of.all().iter(None).map(|record| (record.key().clone(), face(record))).collect()
    }
}

impl World {
    /// What there is, by name.
    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        let state = self.bus.store().state();
        let Some(of) = state.kind(&kind()) else { return BTreeMap::new() };
        of.all()
            .iter(None)
            .map(|record| (record.key().name().to_owned(), value(record)))
            .collect()
    }
}

// === impl Watcher ===

impl Watcher {
    pub(crate) fn new(events: impl Stream<Item = Result<Event, WatchError>> + Send + 'static) -> Self {
        Self {
            events: Box::pin(events),
            view: BTreeMap::new(),
            position: None,
            listed: 0,
            lists: 0,
            puts: 0,
            removals: 0,
            listing: BTreeSet::new(),
            epochs: BTreeMap::new(),
        }
    }

    /// The next event, taken into the view.
    pub(crate) async fn next(&mut self) -> Event {
        timeout(PATIENCE, self.events.next())
            .await
            .unwrap()
            .unwrap()
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Why the watch ends.
    pub(crate) async fn refused(&mut self) -> WatchError {
        let error = self.events.next().await.unwrap().unwrap_err();
        assert!(self.events.next().await.is_none(), "nothing comes after an error");
        error
    }

    pub(crate) async fn step(&mut self) -> Event {
        let event = self.next().await;
        self.take(&event);
        event
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Listing(records) => {
                for record in records {
                    assert!(self.listing.insert(record.key().clone()), "{} is listed twice", record.key());
                    self.listed += 1;
                    self.put(record);
                }
            }
            Event::Listed(position) => {
                let listing = std::mem::take(&mut self.listing);
                self.view.retain(|key, _| listing.contains(key));
                self.epochs.extend(listing.into_iter().map(|key| (key, position.epoch)));
                self.lists += 1;
                self.arrive(*position);
            }
            Event::Changes(changes, position) => {
                for change in changes {
                    match change {
                        Change::Put(record) => {
                            let before = self.view.get(record.key());
                            let risen = before.is_none_or(|before| before.revision() < record.revision());
                            // What did not change in another epoch has the revision of the one before.
                            let comparable = self.epochs.insert(record.key().clone(), position.epoch);
                            assert!(risen || comparable != Some(position.epoch), "{} does not rise", record.key());
                            assert!(record.revision() <= position.revision);
                            self.puts += 1;
                            self.put(record);
                        }
                        Change::Removed(key, revision) => {
                            assert!(*revision <= position.revision);
                            self.removals += 1;
                            self.view.remove(key);
                        }
                        _ => panic!("an unknown change"),
                    }
                }
                self.arrive(*position);
            }
            _ => panic!("an unknown event"),
        }
    }

    fn put(&mut self, record: &Arc<Record>) {
        self.view.insert(record.key().clone(), record.clone());
    }

    fn arrive(&mut self, position: Position) {
        if let Some(before) = self.position
            && before.epoch == position.epoch
        {
            assert!(before.revision <= position.revision, "positions only rise");
        }
        self.position = Some(position);
    }

    /// Takes what comes until a list is whole, or a change is there.
    pub(crate) async fn settled(&mut self) {
        while matches!(self.step().await, Event::Listing(_)) {}
    }

    /// Takes what comes until the view is this.
    pub(crate) async fn until(&mut self, expected: &[(&str, &str)]) {
        while self.values() != values(expected) {
            self.step().await;
        }
    }

    /// Takes what comes until nothing does; says how many events that were.
    pub(crate) async fn quiet(&mut self) -> usize {
        let mut events = 0;
        while let Ok(event) = timeout(QUIET, self.events.next()).await {
            self.take(&event.unwrap().unwrap());
            events += 1;
        }
        events
    }

    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        self.view.iter().map(|(key, record)| (key.name().to_owned(), value(record))).collect()
    }

    pub(crate) fn faces(&self) -> BTreeMap<ObjectKey, (Revision, Vec<u8>)> {
        self.view.iter().map(|(key, record)| (key.clone(), face(record))).collect()
    }
}

pub(crate) fn values(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Everything about an object.
fn face(record: &Record) -> (Revision, Vec<u8>) {
    (record.revision(), record.to_wire().encode_to_vec())
}

fn value(record: &Record) -> String {
    String::from_utf8(Any::decode(record.spec()).unwrap().value).unwrap()
}

pub(crate) fn kind() -> Kind {
    Kind::new("t.v1.Alpha").unwrap()
}

pub(crate) fn publisher() -> PublisherId {
    PublisherId::new(PUBLISHER).unwrap()
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(kind(), "", name).unwrap()
}

/// An object. Nobody registered its kind, so that any bytes are a spec.
pub(crate) fn draft(name: &str, value: &str) -> Draft {
    Draft {
        key: key(name),
        uid: None,
        generation: None,
        labels: Labels::default(),
        refs: Arc::new([]),
        owner: None,
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: packed(value),
    }
}

pub(crate) fn packed(value: &str) -> bytes::Bytes {
    let any = Any { type_url: format!("type.googleapis.com/{}", kind()), value: value.as_bytes().to_vec() };
    any.encode_to_vec().into()
}

pub(crate) fn put(name: &str, value: &str) -> Op {
    Op::Upsert(draft(name, value))
}

/// For some agents only: observers see it nevertheless.
pub(crate) fn put_for(name: &str, value: &str, selector: &str) -> Op {
    let audience = Audience::Selector(Selector::parse(selector).unwrap());
    Op::Upsert(Draft { audience, ..draft(name, value) })
}

pub(crate) fn delete(name: &str) -> Op {
    Op::Delete(key(name))
}

pub(crate) fn finalizers(name: &str, add: &[&str], remove: &[&str]) -> Op {
    let names = |names: &[&str]| Finalizers::new(names.iter().copied()).unwrap();
    Op::Finalizers(FinalizersDraft { key: key(name), add: names(add), remove: names(remove) })
}

pub(crate) fn txn(ops: Vec<Op>) -> Txn {
    let steps = ops.into_iter().map(Step::from).collect();
    Txn { publisher: publisher(), fence: 0, leases: Vec::new(), steps }
}

/// What came of a transaction over the network.
pub(crate) async fn commit(remote: &Remote, txn: Txn) -> Result<Committed, CommitError> {
    Source::commit(remote, txn).await
}
