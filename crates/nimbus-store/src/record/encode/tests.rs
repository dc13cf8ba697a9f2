//! The bytes are those of the generated code.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use nimbus_core::{
    AgentId, Annotations, Audience, Finalizers, Generation, Kind, Labels, LeafHasher, ObjectKey, Owner, PublisherId,
    Reference, Revision, Uid,
};
use nimbus_wire::v1;
use proptest::{collection::vec, prelude::*};
use prost::Message as _;
use prost_types::Any;

use crate::{
    Draft, Slot,
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

fn other_any(kind: &str) -> Bytes {
    Any { type_url: format!("type.googleapis.com/{kind}"), value: vec![7; 5] }
        .encode_to_vec()
        .into()
}

fn turned_any() -> Bytes {
    [&[0x12, 1, 7][..], &[0x0a, 1, b't']].concat().into()
}

fn slot() -> Slot {
    Slot { revision: Revision(9), seq: 1 }
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What the generated code would write of what is the same after a restart, then of the revision.
fn generated(content: &Content, revision: Revision) -> Vec<u8> {
    let v1::Key { kind, namespace, name } = content.key.to_wire();
    let header = v1::Object {
        kind,
        namespace,
        name,
        uid: content.uid.to_string(),
        generation: content.generation.0,
        labels: content.labels.to_wire(),
        refs: content.refs.iter().map(Reference::to_wire).collect(),
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

/// What asks for this, if a draft can.
fn draft(content: &Content) -> Option<Draft> {
    let Content { key, uid, generation, labels, refs, owner, annotations, audience, spec, .. } = content.clone();
    let can = content.finalizers.is_empty()
        && !content.deleting
        && content.status.is_empty()
        && content.observed == Generation(0);
    let (uid, generation) = (Some(uid), Some(generation));
    can.then_some(Draft { key, uid, generation, labels, refs, owner, annotations, audience, spec })
}

#[test]
fn the_bytes_are_those_of_the_generated_code() {
    let check = |content: Content, revision: u64| {
        let revision = Revision(revision);
        let expected = generated(&content, revision);
        let record = Record::new(content.clone(), Slot { revision, seq: 0 });
        assert_eq!(record.encoded(false), expected, "{content:?}");
        assert_eq!(record.encoded_len(false), expected.len());
        assert_eq!(record.owner(), content.owner.as_ref().map(Owner::to_wire));
        assert_eq!((record.spec(), record.status()), (content.spec, content.status));
        assert_eq!(*record.spec_bytes(), *record.spec());
        assert_eq!(record.status_bytes(), record.status());
        if let Some(draft) = draft(&record.content()) {
            assert_eq!(draft.encoded(record.manager(), revision), record.encoded(true));
        }
    };
    check(content(), 1);
    check(Content { key: key("prod", "two"), generation: Generation(300), ..content() }, u64::MAX);
    let labels = Labels::new(&texts(&[("zone", "a"), ("empty", "")])).unwrap();
    check(Content { labels, spec: any(300), ..content() }, 127);
    let agents = Audience::Agents(Arc::new([AgentId::new("a").unwrap()].into()));
    let observed = Record::new(Content { audience: agents, spec: any(3), ..content() }, slot());
    assert_eq!(
        draft(&observed.content()).unwrap().encoded(observed.manager(), slot().revision),
        observed.encoded(true)
    );
    let refs = [
        Reference::strong(key("prod", "x")),
        Reference::weak(key("", "y")),
        Reference { declared: true, ..Reference::strong(key("", "z")) },
        Reference { declared: true, ..Reference::weak(key("", "zz")) },
    ];
    check(Content { refs: refs.into(), observed: Generation(7), status: any(0), ..content() }, 128);
    let owner = v1::Owner { kind: "k".to_owned(), name: "n".repeat(200), ..v1::Owner::default() };
    check(Content { owner: Some(owner.into()), deleting: true, ..content() }, 9);
    check(Content { owner: Some(v1::Owner::default().into()), spec: any(20_000), ..content() }, 9);
    let annotations = Annotations::new(texts(&[("a", "x y"), ("b", "")])).unwrap();
    let finalizers = Finalizers::new(["one", "two"]).unwrap();
    check(Content { annotations, finalizers, ..content() }, 9);
    for spec in [any(0), any(1), any(127), any(128), other_any("demo.v1.Things"), other_any("demo.v1.Thin")] {
        check(Content { spec: spec.clone(), status: spec, ..content() }, 9);
    }
    let uids =
        ["0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcde"];
    for uid in uids.into_iter().map(str::to_owned).chain([1, 31, 33, 253].map(|len| "a".repeat(len))) {
        let uid = Uid::new(&uid).unwrap();
        let record = Record::kept(&Content { uid: uid.clone(), ..content() }, Slot { revision: Revision(1), seq: 0 });
        assert!(record.has_uid(&uid) && !record.has_uid(&Uid::new("b").unwrap()));
        assert_eq!(record.to_uid(), uid);
        check(Content { uid, key: key(&"n".repeat(253), &"m".repeat(253)), ..content() }, 9);
    }
}

#[test]
fn a_spec_stays_as_it_was_written_however_that_was() {
    let usual = any(5);
    let (url, value) = usual.split_at(usual.len() - 7);
    let long = [url, &[0x12, 0x85, 0x00][..], &value[2..]].concat();
    let turned = [value, url].concat();
    let more = [&usual[..], &[0x1a, 1, 1]].concat();
    let twice = [&usual[..], value].concat();
    let nothing = [url, &[0x12, 0x00]].concat();
    let cut = usual[..usual.len() - 1].to_vec();
    for spec in [usual.to_vec(), long, turned, more, twice, nothing, cut, url.to_vec(), vec![0xff; 40]] {
        let record = Record::kept(&Content { spec: spec.clone().into(), ..content() }, slot());
        assert_eq!(record.spec(), spec);
        assert!(record.has_spec(&spec));
        let others = [any(4), any(6), other_any("demo.v1.Other"), Bytes::new(), turned_any()];
        for other in others.iter().filter(|other| ***other != *spec) {
            assert!(!record.has_spec(other), "{spec:?} and {other:?}");
            let other = Record::kept(&Content { spec: other.clone(), ..content() }, slot());
            assert!(!record.has_spec_of(&other) && !other.has_spec_of(&record));
        }
        let same = Record::new(Content { spec: spec.clone().into(), ..content() }, slot());
        assert!(record.has_spec_of(&same));
        let of_others = Content { key: ObjectKey::new(Kind::new("demo.v1.X").unwrap(), "", "x").unwrap(), ..content() };
        let same = Record::kept(&Content { spec: spec.into(), ..of_others }, slot());
        assert!(record.has_spec_of(&same) && same.has_spec_of(&record));
        let named = record.encoded(false);
        assert_eq!(named.len(), record.encoded_len(false));
    }
}

#[test]
fn a_record_is_what_its_writer_decided_and_nothing_else() {
    let whole = Content {
        key: key("prod", "two"),
        uid: Uid::new("0123456789abcdef0123456789abcdef").unwrap(),
        generation: Generation(3),
        labels: Labels::new(&texts(&[("zone", "a")])).unwrap(),
        refs: [Reference::strong(key("prod", "x"))].into(),
        owner: Some(v1::Owner { name: "o".to_owned(), ..v1::Owner::default() }.into()),
        annotations: Annotations::new(texts(&[("a", "x")])).unwrap(),
        finalizers: Finalizers::new(["one"]).unwrap(),
        deleting: true,
        audience: Audience::Agents(Arc::new([AgentId::new("x").unwrap()].into())),
        spec: any(5),
        status: any(6),
        observed: Generation(2),
        ..content()
    };
    let check = |content: &Content| {
        let record = Record::kept(content, slot());
        assert!(record.is(content));
        assert_eq!(record.content(), *content);
        assert_eq!(record.to_wire(), Record::new(content.clone(), slot()).to_wire());
        let (names, key) = ((record.kind(), record.namespace(), record.name()), &content.key);
        assert_eq!(names, (key.kind(), key.namespace(), key.name()));
        assert_eq!((record.to_key(), record.key()), (key.clone(), key));
        record
    };
    let others = [
        Content { uid: Uid::new("u").unwrap(), ..whole.clone() },
        Content { generation: Generation(4), ..whole.clone() },
        Content { labels: Labels::default(), ..whole.clone() },
        Content { refs: Arc::default(), ..whole.clone() },
        Content { owner: None, ..whole.clone() },
        Content { annotations: Annotations::default(), ..whole.clone() },
        Content { finalizers: Finalizers::default(), ..whole.clone() },
        Content { deleting: false, ..whole.clone() },
        Content { audience: Audience::Everyone, ..whole.clone() },
        Content { spec: any(4), ..whole.clone() },
        Content { status: any(5), ..whole.clone() },
        Content { observed: Generation(0), ..whole.clone() },
    ];
    let record = check(&whole);
    for other in others {
        assert!(!record.is(&other), "{other:?}");
        assert!(!check(&other).is(&whole), "{other:?}");
    }
}

#[test]
fn a_record_takes_no_more_than_it_must() {
    // With the two counts of its pointer, exactly a size that allocators have. A million objects are as many mebibytes more
    // for each byte.
    assert_eq!(size_of::<Record>(), 88);
}

/// Names of an object, of which some are prefixes of others.
fn own_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("parent-role-0a1b".to_owned()), Just("n".repeat(253)), "[a-z][a-z0-9-]{0,20}"]
}

/// Uids as buses and others make them up, almost such ones, and others.
fn uid() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-f]{32}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9a-fA-F]{32}",
        "[0-9a-fA-Fg]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9a-f]{4}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9a-f]{31,37}",
        "[a-z]{1,10}",
    ]
}

/// Texts as they may come from outside.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), ".{1,8}", "\\PC{30,40}", Just("x".repeat(300))]
}

/// Owners of an object with these names, of all forms.
fn owner(namespace: String, name: String) -> impl Strategy<Value = v1::Owner> {
    let kind = prop_oneof![4 => "demo\\.v1\\.K[0-9]{1,2}", 1 => any_text(), 1 => Just("k".repeat(253))];
    let namespace = prop_oneof![Just(namespace), "[a-z]{1,5}", any_text()];
    let longer = format!("{name}x");
    let name = prop_oneof![
        3 => (0..=name.len()).prop_map(move |len| name[..len].to_owned()),
        1 => Just(longer),
        1 => any_text()
    ];
    let uid = prop_oneof![4 => uid(), 1 => any_text()];
    (kind, namespace, name, uid).prop_map(|(kind, namespace, name, uid)| v1::Owner { kind, namespace, name, uid })
}

/// An object with anything that lies beside an owner.
fn owned() -> impl Strategy<Value = Content> {
    let names = (prop_oneof![Just(String::new()), "[a-z]{1,8}", Just("m".repeat(253))], own_name());
    let names = names.prop_flat_map(|(namespace, name)| {
        let owner = proptest::option::weighted(0.9, owner(namespace.clone(), name.clone()));
        (Just(namespace), Just(name), owner)
    });
    let finalizers = proptest::option::of("[a-z]{1,80}");
    (names, uid(), 0_u64..70_000, "[a-z]{0,60}", finalizers, 0_usize..300).prop_map(
        |((namespace, name, owner), uid, generation, label, finalizer, bytes)| Content {
            key: key(&namespace, &name),
            uid: Uid::new(&uid).unwrap(),
            generation: Generation(generation),
            labels: Labels::new(&texts(&[("zone", &*label)])).unwrap(),
            owner: owner.map(Owner::from),
            finalizers: Finalizers::new(finalizer.iter().map(String::as_str)).unwrap(),
            spec: any(bytes),
            status: any(bytes / 2),
            ..content()
        },
    )
}

proptest! {
    #[test]
    fn an_object_with_an_owner_is_what_the_generated_code_would_write(
        // Another family in most cases: which kinds have numbers depends on what came before.
        manager in "[a-z]{6}",
        contents in vec(owned(), 1..24),
    ) {
        let manager = PublisherId::new(&manager).unwrap();
        let contents: Vec<_> = contents.into_iter().map(|content| Content { manager: manager.clone(), ..content }).collect();
        let records: Vec<_> = contents.iter().map(|content| Record::kept(content, slot())).collect();
        for (record, content) in records.iter().zip(&contents) {
            let expected = generated(content, slot().revision);
            prop_assert_eq!(record.encoded(false), &*expected);
            prop_assert_eq!(record.encoded_len(false), expected.len());
            prop_assert_eq!(record.owner(), content.owner.as_ref().map(Owner::to_wire));
            prop_assert_eq!(&record.content(), content);
            let mut leaf = LeafHasher::named(content.key.kind().as_str(), record.namespace().as_bytes(), record.name().as_bytes());
            leaf.part(&generated(content, Revision(0)));
            prop_assert_eq!(record.leaf(false), leaf.finish());
            for other in &contents {
                let other_owner = Content { owner: other.owner.clone(), ..content.clone() };
                prop_assert_eq!(record.is(&other_owner), other.owner == content.owner);
                let other_uid = Content { uid: other.uid.clone(), ..content.clone() };
                prop_assert_eq!(record.is(&other_uid), other.uid == content.uid);
            }
            for (other, of) in records.iter().zip(&contents) {
                prop_assert_eq!(record.has_life_of(other), content.uid == of.uid);
            }
        }
    }
}
