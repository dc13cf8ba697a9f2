//! What users write, what there is then, and how long to wait for it. Names are those of policies.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ctkit::{Draft, Object, ObjectKey, Record, Revision, Source, Spec, Store};
use nimbus_core::{Finalizers, PublisherId};
use nimbus_store::{FinalizersDraft, Op, StatusDraft, Step, Txn};
use nimbus_wire::v1;
use prost::Message as _;

use crate::kinds::{Policy, Rules};

/// Nothing happens for this long: nothing will. Time is paused, so that it passes only while everybody waits.
const QUIET: Duration = Duration::from_secs(60);

/// Waits until nothing is left to do.
pub(crate) async fn quiet() {
    tokio::time::sleep(QUIET).await;
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
pub(crate) async fn put(source: &impl Source, name: &str, zones: &[&str], text: &str) {
    let spec = Policy { zones: zones.iter().map(ToString::to_string).collect(), text: text.to_owned() };
    apply(source, Draft::new(name, spec)).await;
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

/// Writes the status of a policy past the kit.
pub(crate) async fn write_status(store: &Store, name: &str, standing: &v1::Standing) {
    let status = standing.pack().encode_to_vec().into();
    let draft = StatusDraft { key: key::<Policy>(name), status, observed: record(store, name).observed() };
    write_as(store, "somebody", Op::Status(draft)).await;
}

/// Writes as a user.
pub(crate) async fn write(source: &impl Source, op: Op) {
    write_as(source, "user", op).await;
}

/// Writes as anybody.
pub(crate) async fn write_as(source: &impl Source, who: &str, op: Op) {
    let publisher = PublisherId::new(who).unwrap();
    let steps = vec![Step::from(op)];
    source.commit(Txn { publisher, fence: 0, leases: Vec::new(), steps }).await.unwrap();
}

/// A policy as it is now, if there is one.
pub(crate) fn find(store: &Store, name: &str) -> Option<Arc<Record>> {
    store.snapshot().get(&key::<Policy>(name))
}

/// A policy as it is now.
pub(crate) fn record(store: &Store, name: &str) -> Arc<Record> {
    find(store, name).unwrap()
}

/// What the kit says of a policy.
pub(crate) fn standing(store: &Store, name: &str) -> v1::Standing {
    let any = prost_types::Any::decode(record(store, name).status()).unwrap();
    v1::Standing::decode(&*any.value).unwrap()
}

/// Whether a policy is ready, in a word, and why not.
pub(crate) fn ready(store: &Store, name: &str) -> (String, String) {
    let conditions = standing(store, name).conditions;
    let ready = conditions.into_iter().find(|condition| condition.r#type == "Ready").unwrap();
    (ready.code, ready.message)
}

/// The newest revision of all.
pub(crate) fn head(store: &Store) -> Revision {
    store.snapshot().revision()
}

/// The rules that are published.
pub(crate) fn rules(store: &Store) -> Vec<Object<Rules>> {
    let (snapshot, kind) = (store.snapshot(), Rules::kind());
    snapshot
        .list(&kind)
        .map(|record| Object::<Rules>::from_wire(&record.to_wire()).unwrap())
        .collect()
}

/// The rules that are published: the text, by zone.
pub(crate) fn published(store: &Store) -> BTreeMap<String, String> {
    rules(store).into_iter().map(|rules| (rules.spec.zone, rules.spec.text)).collect()
}

/// What is expected to be published: the text, by zone.
pub(crate) fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(zone, text)| ((*zone).to_owned(), (*text).to_owned())).collect()
}
