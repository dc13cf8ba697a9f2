//! A manager on a store in this process, and what tests need to look at both.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{Controller, Draft, Entry, Handle, Manager, Object, ObjectKey, Record, Revision, Spec, Store};
use nimbus_core::PublisherId;
use nimbus_store::{Op, StatusDraft, Step, Txn};
use nimbus_wire::v1;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::{sync::oneshot, task::JoinHandle};

/// What users write: rules for some zones.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Policy {
    #[prost(string, repeated, tag = "1")]
    pub(crate) zones: Vec<String>,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
}

impl prost::Name for Policy {
    const NAME: &'static str = "Policy";
    const PACKAGE: &'static str = "kit.v1";
}

/// What agents get: the rules of one zone.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Rules {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    #[prost(string, tag = "2")]
    pub(crate) text: String,
}

impl prost::Name for Rules {
    const NAME: &'static str = "Rules";
    const PACKAGE: &'static str = "kit.v1";
}

/// What a policy says of itself.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PolicyStatus {
    #[prost(uint32, tag = "1")]
    pub(crate) zones: u32,
    #[prost(string, tag = "2")]
    pub(crate) note: String,
}

impl prost::Name for PolicyStatus {
    const NAME: &'static str = "PolicyStatus";
    const PACKAGE: &'static str = "kit.v1";
}

/// What policies refer to.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Zone {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

impl prost::Name for Zone {
    const NAME: &'static str = "Zone";
    const PACKAGE: &'static str = "kit.v1";
}

/// What reactors have noted, in order. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

/// A manager that runs.
pub(crate) struct World {
    pub(crate) handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

// === impl World ===

impl World {
    /// One controller on a store.
    pub(crate) async fn new(store: &Store, controller: Controller) -> Self {
        let world = Self::run(Manager::builder(store.clone()).controller(controller).seed(7).build().unwrap());
        assert!(world.handle.readiness().ready().await);
        world.settled().await;
        world
    }

    /// Whatever manager.
    pub(crate) fn run(manager: Manager) -> Self {
        let handle = manager.handle();
        let (stop, stopped) = oneshot::channel();
        let run = manager.run_until(async move { drop(stopped.await) });
        let task = tokio::spawn(async move { run.await.unwrap() });
        Self { handle, stop: Some(stop), task }
    }

    /// What is known of an object in the queue.
    pub(crate) async fn entry(&self, key: &ObjectKey) -> Option<Entry> {
        self.handle.entries().await.unwrap().into_iter().find(|entry| entry.object == *key)
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn settled(&self) {
        self.handle.settled().await.unwrap();
    }

    /// Stops it, and waits until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.task).await.unwrap();
    }
}

// === impl Log ===

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    /// What was noted since the last time that this was asked.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// Waits until something is so, for an hour of paused time at most.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(3600), wait)
        .await
        .expect("it should be so by now");
}

/// The key of an object of a kind.
pub(crate) fn key<K: Spec>(name: &str) -> ObjectKey {
    ObjectKey::new(K::kind(), "", name).unwrap()
}

/// Writes a policy.
pub(crate) async fn put(store: &Store, name: &str, zones: &[&str], text: &str) {
    let spec = Policy { zones: zones.iter().map(ToString::to_string).collect(), text: text.to_owned() };
    apply(store, Draft::new(name, spec)).await;
}

/// Writes any object as a user would.
pub(crate) async fn apply<K: Spec>(store: &Store, draft: Draft<K>) {
    write(store, Op::Upsert(draft.try_into().unwrap()).into()).await;
}

/// Deletes an object as a user would.
pub(crate) async fn delete(store: &Store, key: &ObjectKey) {
    write(store, Op::Delete(key.clone()).into()).await;
}

async fn write(store: &Store, step: Step) {
    write_as(store, "user", step).await;
}

/// Writes as anybody.
pub(crate) async fn write_as(store: &Store, who: &str, step: Step) {
    let publisher = PublisherId::new(who).unwrap();
    ctkit::Source::commit(store, Txn { publisher, fence: 0, leases: Vec::new(), steps: vec![step] })
        .await
        .unwrap();
}

/// Writes a status past the kit.
pub(crate) async fn write_status(store: &Store, key: &ObjectKey, standing: &v1::Standing) {
    let record = record(store, key);
    let status = standing.pack().encode_to_vec().into();
    let draft = StatusDraft { key: key.clone(), status, observed: record.observed() };
    write_as(store, "somebody", Op::Status(draft).into()).await;
}

/// An object as it is now.
pub(crate) fn record(store: &Store, key: &ObjectKey) -> Arc<Record> {
    store.snapshot().get(key).unwrap()
}

/// The newest revision of all.
pub(crate) fn head(store: &Store) -> Revision {
    store.snapshot().revision()
}

/// The rules that are published: zone and text, by name of the zone.
pub(crate) fn published(store: &Store) -> BTreeMap<String, String> {
    let snapshot = store.snapshot();
    let kind = Rules::kind();
    let rules = snapshot
        .list(&kind)
        .map(|record| Object::<Rules>::from_wire(&record.to_wire()).unwrap().spec);
    rules.map(|rules| (rules.zone, rules.text)).collect()
}

/// What the kit says of an object.
pub(crate) fn standing(store: &Store, key: &ObjectKey) -> v1::Standing {
    let record = store.snapshot().get(key).unwrap();
    let any = prost_types::Any::decode(record.status()).unwrap();
    v1::Standing::decode(&*any.value).unwrap()
}

/// Whether it is ready, and why not.
pub(crate) fn ready(store: &Store, key: &ObjectKey) -> (String, String) {
    let standing = standing(store, key);
    let ready = standing.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    (ready.code.clone(), ready.message.clone())
}
