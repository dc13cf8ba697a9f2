//! Managers on a store that outlives them, and what tests need to look at both.

use std::{collections::BTreeMap, time::Duration};

use ctkit::{
    Draft, Handle, Instances, Leases, Manager, ManagerBuilder, Object, ObjectKey, Record, Revision, Source, Spec, Store,
};
use nimbus_core::{Finalizers, PublisherId};
use nimbus_store::{FinalizersDraft, Op, Step, Txn};
use nimbus_wire::v1;
use prost::Message as _;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::process::Pause;

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
    const PACKAGE: &'static str = "lives.v1";
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
    const PACKAGE: &'static str = "lives.v1";
}

/// One life of a manager.
pub(crate) struct Life {
    pub(crate) handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

/// Nothing happens for this long: nothing will. Time is paused, so that it passes only while everybody waits.
pub(crate) const QUIET: Duration = Duration::from_secs(60);

// === impl Life ===

impl Life {
    /// Starts a manager.
    pub(crate) fn start<S: Source + Leases>(builder: ManagerBuilder<S>) -> Self {
        Self::paused_by(&Pause::default(), builder)
    }

    /// Starts a manager that can be stopped for a while.
    pub(crate) fn paused_by<S: Source + Leases>(pause: &Pause, builder: ManagerBuilder<S>) -> Self {
        let manager = builder.build().unwrap();
        let handle = manager.handle();
        let (stop, stopped) = oneshot::channel();
        let run = manager.run_until(async move { drop(stopped.await) });
        let task = tokio::spawn(pause.over(async move { run.await.unwrap() }));
        Self { handle, stop: Some(stop), task }
    }

    /// Starts a manager, and waits until it has looked at everything.
    pub(crate) async fn begin<S: Source + Leases>(builder: ManagerBuilder<S>) -> Self {
        let life = Self::start(builder);
        assert!(life.handle.readiness().ready().await, "{:?}", life.handle.readiness().missing());
        quiet().await;
        life
    }

    /// Ends as an operator would end it.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    /// Ends without a word.
    pub(crate) async fn crash(self) {
        self.task.abort();
        drop(self.task.await);
    }
}

/// A manager of its own on a store.
pub(crate) fn alone(store: &Store) -> ManagerBuilder<Store> {
    Manager::builder(store.clone()).instances(Instances::alone()).seed(7)
}

/// Waits until nothing is left to do.
pub(crate) async fn quiet() {
    tokio::time::sleep(QUIET).await;
}

/// The key of an object of a kind.
pub(crate) fn key<K: Spec>(name: &str) -> ObjectKey {
    ObjectKey::new(K::kind(), "", name).unwrap()
}

/// A policy as a user would write it.
pub(crate) fn policy(name: &str, zones: &[&str], text: &str) -> Draft<Policy> {
    Draft::new(name, Policy { zones: zones.iter().map(ToString::to_string).collect(), text: text.to_owned() })
}

/// Writes a policy.
pub(crate) async fn put(source: &impl Source, name: &str, zones: &[&str], text: &str) {
    apply(source, policy(name, zones, text)).await;
}

/// Writes any object as a user would.
pub(crate) async fn apply<K: Spec>(source: &impl Source, draft: Draft<K>) {
    write(source, Op::Upsert(draft.try_into().unwrap())).await;
}

/// Deletes a policy as a user would.
pub(crate) async fn delete(source: &impl Source, name: &str) {
    write(source, Op::Delete(key::<Policy>(name))).await;
}

/// Changes the finalizers of a policy, as somebody else would.
pub(crate) async fn finalizers(source: &impl Source, name: &str, add: &[&str], remove: &[&str]) {
    let names = |names: &[&str]| Finalizers::new(names.iter().copied()).unwrap();
    let draft = FinalizersDraft { key: key::<Policy>(name), add: names(add), remove: names(remove) };
    write(source, Op::Finalizers(draft)).await;
}

async fn write(source: &impl Source, op: Op) {
    let publisher = PublisherId::new("user").unwrap();
    let steps = vec![Step::from(op)];
    source.commit(Txn { publisher, fence: 0, leases: Vec::new(), steps }).await.unwrap();
}

/// A policy as it is now.
pub(crate) fn find(store: &Store, name: &str) -> Option<std::sync::Arc<Record>> {
    store.snapshot().get(&key::<Policy>(name))
}

/// The rules that are published: the text, by zone.
pub(crate) fn published(store: &Store) -> BTreeMap<String, String> {
    rules(store).into_iter().map(|rules| (rules.spec.zone, rules.spec.text)).collect()
}

/// The rules that are published.
pub(crate) fn rules(store: &Store) -> Vec<Object<Rules>> {
    let (snapshot, kind) = (store.snapshot(), Rules::kind());
    snapshot
        .list(&kind)
        .map(|record| Object::<Rules>::from_wire(&record.to_wire()).unwrap())
        .collect()
}

/// What is expected to be published.
pub(crate) fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(zone, text)| ((*zone).to_owned(), (*text).to_owned())).collect()
}

/// How far a store has come.
pub(crate) fn head(store: &Store) -> Revision {
    store.bus().store().state().head()
}

/// Whether a policy is ready, in a word.
pub(crate) fn ready(store: &Store, name: &str) -> String {
    let record = find(store, name).unwrap();
    let any = prost_types::Any::decode(record.status()).unwrap();
    let standing = v1::Standing::decode(&*any.value).unwrap();
    let ready = standing.conditions.into_iter().find(|condition| condition.r#type == "Ready");
    ready.map(|ready| ready.code).unwrap_or_default()
}
