//! Descriptor sets, and specs that are made with them.

use prost::Message as _;
use prost_reflect::DynamicMessage;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use serde_json::{Value, json};

use crate::{
    corpus::{Files, named},
    schema::{self, KINDS, POOL},
};

pub(super) fn sets() -> Files {
    let old = schema::compile(&["old.proto"]);
    let whole = FileDescriptorSet::decode(&*schema::compile(&["fuzz.proto"])).unwrap();
    let without_imports = whole.file.into_iter().filter(|file| file.name() == "fuzz.proto").collect();
    let file = |name: &str, imports: &[&str]| FileDescriptorProto {
        name: Some(name.to_owned()),
        syntax: Some("proto3".to_owned()),
        dependency: imports.iter().map(ToString::to_string).collect(),
        message_type: vec![DescriptorProto { name: Some("A".to_owned()), ..DescriptorProto::default() }],
        ..FileDescriptorProto::default()
    };
    let set = |file: Vec<FileDescriptorProto>| FileDescriptorSet { file }.encode_to_vec();
    let nested = (0..80).fold(DescriptorProto::default(), |inner, depth| DescriptorProto {
        name: Some(format!("M{depth}")),
        nested_type: vec![DescriptorProto { name: Some("N".to_owned()), ..inner }],
        ..DescriptorProto::default()
    });
    let deep = FileDescriptorProto { message_type: vec![nested], ..file("deep.proto", &[]) };
    named([
        ("proto2", old),
        ("without-imports", set(without_imports)),
        ("one-message", set(vec![file("a.proto", &[])])),
        ("imports-itself", set(vec![file("a.proto", &["a.proto"])])),
        ("circle", set(vec![file("a.proto", &["b.proto"]), file("b.proto", &["a.proto"])])),
        ("missing-import", set(vec![file("a.proto", &["nowhere.proto"])])),
        ("same-name-twice", set(vec![file("a.proto", &[]), file("b.proto", &[])])),
        ("built-in", set(vec![file("google/protobuf/any.proto", &[])])),
        ("contract", set(vec![file("nimbus/v1/object.proto", &[])])),
        ("deep", set(vec![deep])),
        ("empty", Vec::new()),
        ("no-descriptor", b"\x0a\xff\xff\xff\xff\x0f".to_vec()),
    ])
}

pub(super) fn specs() -> Files {
    let spec = |kind: usize, json: &Value| {
        let message = POOL.get_message_by_name(KINDS[kind]).unwrap();
        let mut bytes = vec![u8::try_from(kind).unwrap()];
        DynamicMessage::deserialize(message, json).unwrap().encode(&mut bytes).unwrap();
        bytes
    };
    let raw = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    // One message in another, deeper than any decoder goes.
    let deep = (0..120).fold(Vec::new(), |inner: Vec<u8>, _| {
        let mut outer = vec![0x9a, 0x01];
        prost::encode_length_delimiter(inner.len(), &mut outer).unwrap();
        outer.extend(inner);
        outer
    });
    named([
        ("policy", spec(0, &json!({"zone": "a", "priority": 7, "rules": ["allow", ""]}))),
        ("empty", raw(0, b"")),
        (
            "references",
            spec(
                1,
                &json!({
                    "policy": "p", "zones": ["a", "n/b", "/c"], "peers": "zone in (a,b)", "many": [{"policy": "q"}, {}],
                    "nested": {"1": {"inner": {"zones": ["d"]}}},
                }),
            ),
        ),
        // A name that none can be, a message in two pieces, and a map of which one entry replaces another.
        ("bad-reference", raw(1, b"\x92\x02\x03a b")),
        ("reference-in-pieces", raw(1, b"\x9a\x01\x04\x92\x02\x01a\x9a\x01\x04\x92\x02\x01b")),
        (
            "references-replaced",
            raw(1, b"\x82\x01\x08\x08\x01\x12\x04\x92\x02\x01a\x82\x01\x08\x08\x01\x12\x04\x92\x02\x01b"),
        ),
        (
            "everything",
            spec(
                1,
                &json!({
                    "text": "ü", "raw": "AAE=", "flag": true, "i32": -1, "s64": "-5", "f32": 7, "sf64": "-7", "u64": "9",
                    "single": 1.5, "twice": -0.5, "tier": "TIER_LOW", "numbers": [1, -1], "tiers": ["TIER_WEB"],
                    "texts": ["a"], "byName": {"k": "1"}, "nested": {"1": {"text": "x"}}, "raws": {"true": "AA=="},
                    "maybe": "", "inner": {"inner": {"tier": "TIER_WEB"}}, "many": [{}], "right": {"zone": "z"},
                    "free": {"a": [1, null]}, "at": "2024-01-01T00:00:00Z", "took": "1.5s", "wrapped": "w", "count": "3",
                }),
            ),
        ),
        (
            "proto2",
            spec(2, &json!({"name": "n", "number": 3, "part": [{"size": 1}], "packed": [1, -1], "state": "DONE"})),
        ),
        ("required-is-missing", raw(2, b"\x10\x03")),
        ("unknown-field", raw(0, b"\xfa\x3f\x01x")),
        ("group-that-does-not-end", raw(2, b"\x0a\x01n\x1b\x08\x01")),
        ("group-that-did-not-begin", raw(0, b"\x0c")),
        ("unknown-group", raw(0, b"\xa3\x06\x08\x01\xa4\x06")),
        ("wrong-wire-type", raw(0, b"\x08\x01")),
        ("no-utf8", raw(0, b"\x0a\x02\xff\xfe")),
        ("long-varint", raw(0, b"\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02")),
        ("packed-and-not", raw(1, b"\x62\x02\x01\x02\x60\x03")),
        ("field-zero", raw(0, b"\x00\x00")),
        ("map-without-key", raw(1, b"\x7a\x02\x10\x01")),
        ("oneof-twice", raw(1, b"\xaa\x01\x01a\xb2\x01\x03\x0a\x01z\xaa\x01\x01b")),
        ("deep", raw(1, &deep)),
    ])
}
