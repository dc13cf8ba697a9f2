//! The bytes are those of the generated code.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use nimbus_core::{
    Annotations, Audience, Finalizers, Generation, Kind, Labels, ObjectKey, Owner, PublisherId, Reference, Revision,
    Uid,
};
use nimbus_wire::v1;
use prost::Message as _;
use prost_types::Any;

use crate::{
    Slot,
    record::{Content, Record},
};

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(Kind::new("demo.v1.Thing").unwrap(), namespace, name).unwrap()
}

fn content() -> Content {
    Content {
        key: key("", "one"),
        uid: Uid::new("u").unwrap(),
        generation: Generation(0),
        labels: Labels::default(),
        refs: Arc::default(),
        owner: None,
        manager: PublisherId::new("p").unwrap(),
        annotations: Annotations::default(),
        finalizers: Finalizers::default(),
        deleting: false,
        audience: Audience::Everyone,
        spec: Bytes::new(),
        status: Bytes::new(),
        observed: Generation(0),
    }
}

fn any(bytes: usize) -> Bytes {
    Any { type_url: "type.googleapis.com/demo.v1.Thing".to_owned(), value: vec![7; bytes] }
        .encode_to_vec()
        .into()
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What the generated code would write of what is the same after a restart, then of the revision.
fn generated(content: &Content, revision: Revision) -> Vec<u8> {
    let reference = |reference: &Reference| {
        let v1::Key { kind, namespace, name } = reference.to.to_wire();
        v1::Reference { kind, namespace, name, weak: reference.weak }
    };
    let v1::Key { kind, namespace, name } = content.key.to_wire();
    let header = v1::Object {
        kind,
        namespace,
        name,
        uid: content.uid.to_string(),
        generation: content.generation.0,
        labels: content.labels.to_wire(),
        refs: content.refs.iter().map(reference).collect(),
        owner: content.owner.as_ref().map(Owner::to_wire),
        manager: content.manager.to_string(),
        observed_generation: content.observed.0,
        annotations: content.annotations.to_wire(),
        finalizers: content.finalizers.to_wire(),
        deleting: content.deleting,
        ..v1::Object::default()
    };
    let part = |object: v1::Object| object.encode_to_vec();
    let unpack = |bytes: &Bytes| (!bytes.is_empty()).then(|| Any::decode(bytes.clone()).unwrap());
    let spec = part(v1::Object { spec: unpack(&content.spec), ..v1::Object::default() });
    let status = part(v1::Object { status: unpack(&content.status), ..v1::Object::default() });
    [part(header), spec, status, part(v1::Object { revision: revision.0, ..v1::Object::default() })].concat()
}

#[test]
fn the_bytes_are_those_of_the_generated_code() {
    let check = |content: Content, revision: u64| {
        let revision = Revision(revision);
        let expected = generated(&content, revision);
        let record = Record::new(content.clone(), Slot { revision, seq: 0 });
        assert_eq!(record.encoded(false)[0], expected, "{content:?}");
        assert_eq!(record.owner(), content.owner.as_ref().map(Owner::to_wire));
        assert_eq!((record.spec(), record.status()), (content.spec, content.status));
        assert_eq!(record.spec_bytes(), record.spec());
        assert_eq!(record.status_bytes(), record.status());
    };
    check(content(), 1);
    check(Content { key: key("prod", "two"), generation: Generation(300), ..content() }, u64::MAX);
    let labels = Labels::new(&texts(&[("zone", "a"), ("empty", "")])).unwrap();
    check(Content { labels, spec: any(300), ..content() }, 127);
    let refs = [Reference::strong(key("prod", "x")), Reference { to: key("", "y"), weak: true }];
    check(Content { refs: refs.into(), observed: Generation(7), status: any(0), ..content() }, 128);
    let owner = v1::Owner { kind: "k".to_owned(), name: "n".repeat(200), ..v1::Owner::default() };
    check(Content { owner: Some(owner.into()), deleting: true, ..content() }, 9);
    check(Content { owner: Some(v1::Owner::default().into()), spec: any(20_000), ..content() }, 9);
    let annotations = Annotations::new(texts(&[("a", "x y"), ("b", "")])).unwrap();
    let finalizers = Finalizers::new(["one", "two"]).unwrap();
    check(Content { annotations, finalizers, ..content() }, 9);
}
