//! The kinds of a user, as a user writes them.

use std::path::{Path, PathBuf};

use nimbus_wire::v1;
use prost::Message as _;

/// The kind that the tests publish.
pub(crate) const KIND: &str = "demo.v1.NetworkPolicy";

/// The same as in the proto file.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NetworkPolicy {
    #[prost(string, tag = "1")]
    pub(crate) zone: String,
    #[prost(uint32, tag = "2")]
    pub(crate) priority: u32,
    #[prost(string, repeated, tag = "3")]
    pub(crate) rules: Vec<String>,
}

/// Where this test keeps its files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e")
}

/// The descriptors, as `RegisterKinds` takes them.
pub(crate) fn descriptor_set() -> Vec<u8> {
    let files = protox::compile(["demo/v1/network_policy.proto"], [folder().join("proto")]);
    files.unwrap().encode_to_vec()
}

/// A spec, packed.
pub(crate) fn pack(kind: &str, value: Vec<u8>) -> prost_types::Any {
    prost_types::Any { type_url: format!("type.googleapis.com/{kind}"), value }
}

/// A policy of that name.
pub(crate) fn policy(name: &str, zone: &str, priority: u32) -> v1::Object {
    let spec = NetworkPolicy { zone: zone.to_owned(), priority, rules: Vec::new() };
    v1::Object { name: name.to_owned(), spec: Some(pack(KIND, spec.encode_to_vec())), ..v1::Object::default() }
}

/// The key of the policy of that name.
pub(crate) fn key(name: &str) -> v1::Key {
    v1::Key { kind: KIND.to_owned(), namespace: String::new(), name: name.to_owned() }
}

/// An op that wants the object to be like this.
pub(crate) fn upsert(object: v1::Object) -> v1::Op {
    v1::Op { op: Some(v1::op::Op::Upsert(object)), ..v1::Op::default() }
}

/// An op that wants the object to be gone.
pub(crate) fn delete(key: v1::Key) -> v1::Op {
    v1::Op { op: Some(v1::op::Op::Delete(key)), ..v1::Op::default() }
}

/// One transaction of that publisher.
pub(crate) fn apply(publisher: &str, ops: Vec<v1::Op>) -> v1::ApplyRequest {
    v1::ApplyRequest { publisher: publisher.to_owned(), ops, ..v1::ApplyRequest::default() }
}

/// A sync of policies as a whole.
pub(crate) fn sync(publisher: &str, objects: Vec<v1::Object>) -> Vec<v1::SyncRequest> {
    vec![begin(publisher, &[KIND]), items(objects), end()]
}

pub(crate) fn begin(publisher: &str, kinds: &[&str]) -> v1::SyncRequest {
    let kinds = kinds.iter().map(|&kind| kind.to_owned()).collect();
    step(v1::sync_request::Step::Begin(v1::SyncBegin {
        publisher: publisher.to_owned(),
        fence: 0,
        kinds,
        leases: vec![],
    }))
}

pub(crate) fn items(objects: Vec<v1::Object>) -> v1::SyncRequest {
    step(v1::sync_request::Step::Items(v1::SyncItems { objects }))
}

pub(crate) fn keep(keys: Vec<v1::Key>) -> v1::SyncRequest {
    step(v1::sync_request::Step::Keep(v1::SyncKeep { keys }))
}

pub(crate) fn end() -> v1::SyncRequest {
    step(v1::sync_request::Step::End(v1::SyncEnd {}))
}

fn step(step: v1::sync_request::Step) -> v1::SyncRequest {
    v1::SyncRequest { step: Some(step) }
}
