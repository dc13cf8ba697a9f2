//! Objects, collections and a scripted source, for tests.

use std::{sync::Arc, time::Duration};

use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::{
    Annotations, Audience, Epoch, Finalizers, Generation, Kind, Labels, ObjectKey, Position, PublisherId, Revision,
    ScopeHash, Uid,
};
use nimbus_store::{Committed, Content, Draft, Op, Record, Slot, Txn};
use prometheus_client::registry::Registry;
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::{Stream, wrappers::ReceiverStream};

use crate::source::{CommitError, Event, Source, Store, WatchError};

/// A source that says what a test tells it to.
#[derive(Clone)]
pub(crate) struct Scripted {
    opened: mpsc::Sender<Watched>,
}

/// A watch that was opened at a scripted source.
pub(crate) struct Watched {
    pub(crate) kind: Kind,
    pub(crate) from: Option<Position>,
    pub(crate) events: mpsc::Sender<Result<Event, WatchError>>,
}

/// The watches of a scripted source, in the order in which they were opened.
pub(crate) struct Script {
    opened: mpsc::Receiver<Watched>,
}

pub(crate) fn kind() -> Kind {
    Kind::new("test.v1.Alpha").unwrap()
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(kind(), "", name).unwrap()
}

pub(crate) fn position(epoch: u64, revision: u64) -> Position {
    Position { epoch: Epoch(epoch), revision: Revision(revision), scope: ScopeHash(7) }
}

pub(crate) fn record(name: &str, revision: u64) -> Arc<Record> {
    record_of(name, revision, "same")
}

pub(crate) fn record_of(name: &str, revision: u64, spec: &str) -> Arc<Record> {
    let content = Content {
        key: key(name),
        uid: Uid::new("u1").unwrap(),
        generation: Generation(1),
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        manager: publisher(),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: Audience::Everyone,
        spec: spec.to_owned().into(),
        status: bytes::Bytes::new(),
        observed: Generation(0),
    };
    Arc::new(Record::new(content, Slot { revision: Revision(revision), seq: 0 }))
}

pub(crate) fn publisher() -> PublisherId {
    PublisherId::new("tester").unwrap()
}

/// An empty collection that remembers that many ends of objects.
pub(crate) fn store(epoch: u64, tombstones: usize) -> Store {
    let mut config = Config::new(Epoch(epoch), 1);
    config.limits.store.tombstones = tombstones;
    Store::from_bus(Bus::new(config, Metrics::new(&mut Registry::default())))
}

pub(crate) fn put(key: &ObjectKey, spec: &[u8]) -> Op {
    Op::Upsert(Draft {
        key: key.clone(),
        uid: None,
        generation: None,
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        annotations: Annotations::default(),
        audience: Audience::Everyone,
        spec: spec.to_vec().into(),
    })
}

pub(crate) fn commit(store: &Store, ops: impl IntoIterator<Item = Op>) -> Revision {
    let steps = ops.into_iter().map(Into::into).collect();
    let txn = Txn { publisher: publisher(), fence: 0, leases: Vec::new(), steps };
    store.bus().store().commit(&txn).unwrap().revision
}

/// Waits a minute of paused time at most, which is no time at all.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), what).await.expect("it should not take that long")
}

// === impl Scripted ===

impl Scripted {
    pub(crate) fn new() -> (Self, Script) {
        let (sender, opened) = mpsc::channel(64);
        (Self { opened: sender }, Script { opened })
    }
}

impl Source for Scripted {
    fn watch(
        &self,
        kind: &Kind,
        from: Option<Position>,
    ) -> impl Stream<Item = Result<Event, WatchError>> + Send + 'static {
        let (events, receiver) = mpsc::channel(64);
        let watched = Watched { kind: kind.clone(), from, events };
        assert!(self.opened.try_send(watched).is_ok(), "too many watches, or nobody looks");
        ReceiverStream::new(receiver)
    }

    async fn commit(&self, _txn: Txn) -> Result<Committed, CommitError> {
        Err(CommitError::Unavailable("it is only scripted".into()))
    }
}

// === impl Script ===

impl Script {
    /// The next watch that is opened.
    pub(crate) async fn next(&mut self) -> Watched {
        soon(self.opened.recv()).await.unwrap()
    }

    /// Whether none was opened that nobody has looked at.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.opened.try_recv().is_err()
    }
}

// === impl Watched ===

impl Watched {
    pub(crate) async fn say(&self, event: Event) {
        self.events.send(Ok(event)).await.unwrap();
    }

    pub(crate) async fn list(&self, records: Vec<Arc<Record>>, at: Position) {
        self.say(Event::Listing(records)).await;
        self.say(Event::Listed(at)).await;
    }
}
