//! What specs refer to by what they say.

mod random;

use std::sync::Arc;

use nimbus_core::{Kind, ObjectKey, Reference};
use prost::Message as _;
use prost_reflect::DynamicMessage;

use crate::schemas::{Schemas, tests::compile};

const SOURCE: &str = r#"syntax = "proto3";
package demo;
import "nimbus/v1/options.proto";
message All {
  string policy = 1 [(nimbus.v1.refers) = {kind: "demo.Policy"}];
  repeated string zones = 2 [(nimbus.v1.refers) = {kind: "demo.Zone" weak: true}];
  map<string, string> by_name = 3 [(nimbus.v1.refers) = {kind: "demo.Zone"}];
  map<int32, Inner> by_number = 4;
  Inner inner = 5;
  repeated Inner inners = 6;
  string peers = 7 [(nimbus.v1.refers) = {kind: "demo.All" selector: true}];
  oneof either {
    string first = 8 [(nimbus.v1.refers) = {kind: "demo.Policy"}];
    Inner second = 9;
    uint32 third = 10;
  }
  optional string maybe = 11 [(nimbus.v1.refers) = {kind: "demo.Policy" weak: true}];
  string text = 12;
  Plain plain = 13;
  map<bool, string> by_flag = 14 [(nimbus.v1.refers) = {kind: "demo.Zone"}];
}
message Inner {
  string zone = 1 [(nimbus.v1.refers) = {kind: "demo.Zone"}];
  Inner deeper = 2;
  string text = 3;
}
message Plain { string text = 1; Plain deeper = 2; }
message Policy { string text = 1; }
message Zone { Plain plain = 1; }"#;

fn schemas() -> Schemas {
    let schemas = Schemas::default();
    schemas.register(&compile(&[("demo.proto", SOURCE)]), &[]).unwrap();
    schemas
}

/// `kind/name` or `kind/namespace/name`.
fn key(text: &str) -> ObjectKey {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, "", name),
        [kind, namespace, name] => (kind, namespace, name),
        _ => panic!("{text}"),
    };
    ObjectKey::new(Kind::new(&format!("demo.{kind}")).unwrap(), namespace, name).unwrap()
}

/// `Zone/a` is strong, `~Zone/a` weak; with a `*` the spec says so.
fn references(text: &str) -> Arc<[Reference]> {
    let reference = |text: &str| {
        let (declared, text) = text.strip_prefix('*').map_or((false, text), |text| (true, text));
        let (weak, text) = text.strip_prefix('~').map_or((false, text), |text| (true, text));
        Reference { to: key(text), weak, declared }
    };
    text.split_whitespace().map(reference).collect()
}

/// A message from its JSON.
fn encode(schemas: &Schemas, json: &str) -> Vec<u8> {
    let descriptor = schemas.snapshot().pool.get_message_by_name("demo.All").unwrap();
    let mut json = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(descriptor, &mut json).unwrap().encode_to_vec()
}

const MAX: usize = 4;

#[track_caller]
fn check(stated: &str, json: &str, expected: &str) {
    let schemas = schemas();
    let completed = schemas
        .declared()
        .complete(&key("All/prod/x"), &encode(&schemas, json), references(stated), MAX)
        .unwrap();
    let mut expected = references(expected).to_vec();
    expected.sort();
    assert_eq!(completed.to_vec(), expected, "{json}");
}

#[track_caller]
fn refused(json: &str, field: &str, words: &str) {
    let schemas = schemas();
    let flaw = schemas
        .declared()
        .complete(&key("All/prod/x"), &encode(&schemas, json), references("Zone/stated"), MAX)
        .unwrap_err();
    assert_eq!(flaw.field, field, "{json}");
    assert!(flaw.reason.to_string().contains(words), "{}", flaw.reason);
}

#[test]
fn a_field_that_says_so_names_another_object() {
    check("", "{}", "");
    check("", r#"{"text": "a", "plain": {"text": "b", "deeper": {"text": "c"}}}"#, "");
    check("", r#"{"policy": "p"}"#, "*Policy/prod/p");
    check("", r#"{"policy": "stage/p"}"#, "*Policy/stage/p");
    check("", r#"{"policy": "/p"}"#, "*Policy/p");
    check("", r#"{"zones": ["a", "b", "a"]}"#, "*~Zone/prod/a *~Zone/prod/b");
    check("", r#"{"byName": {"x": "a", "y": "b"}}"#, "*Zone/prod/a *Zone/prod/b");
    check("", r#"{"byFlag": {"true": "a"}}"#, "*Zone/prod/a");
    check("", r#"{"byNumber": {"7": {"zone": "a"}, "-7": {"deeper": {"zone": "b"}}}}"#, "*Zone/prod/a *Zone/prod/b");
    check("", r#"{"inner": {"deeper": {"deeper": {"zone": "a"}, "text": "b"}}}"#, "*Zone/prod/a");
    check("", r#"{"inners": [{"zone": "a"}, {}, {"deeper": {"zone": "b"}}]}"#, "*Zone/prod/a *Zone/prod/b");
    check("", r#"{"second": {"zone": "a"}}"#, "*Zone/prod/a");
    check("", r#"{"maybe": ""}"#, "");
    check("", r#"{"maybe": "m"}"#, "*~Policy/prod/m");
    // Selectors order nothing.
    check("", r#"{"peers": "tier in (a,b),!canary"}"#, "");
}

#[test]
fn what_is_said_twice_is_there_once_and_strong_if_anybody_says_so() {
    check("Zone/other", r#"{"policy": "p"}"#, "Zone/other *Policy/prod/p");
    check("", r#"{"zones": ["a"], "inner": {"zone": "a"}}"#, "*Zone/prod/a");
    // What is stated stays stated, unless the spec says more.
    check("Zone/prod/a", r#"{"zones": ["a"]}"#, "Zone/prod/a");
    check("~Zone/prod/a", r#"{"zones": ["a"]}"#, "~Zone/prod/a");
    check("Zone/prod/a", r#"{"inner": {"zone": "a"}}"#, "Zone/prod/a");
    check("~Zone/prod/a", r#"{"inner": {"zone": "a"}}"#, "*Zone/prod/a");
    check("Zone/prod/a ~Zone/prod/a", r#"{"policy": "p"}"#, "Zone/prod/a *Policy/prod/p");
}

#[test]
fn what_no_object_can_be_called_is_refused_with_its_field() {
    refused(r#"{"policy": "two words"}"#, "policy", r#"name "two words""#);
    refused(r#"{"policy": "a/b/c"}"#, "policy", r#"name "b/c""#);
    refused(r#"{"policy": "two words/c"}"#, "policy", r#"namespace "two words""#);
    refused(r#"{"policy": "a/"}"#, "policy", r#"name """#);
    refused(r#"{"zones": ["a", ""]}"#, "zones[1]", r#"name """#);
    refused(r#"{"byName": {"x": ""}}"#, r#"by_name["x"]"#, r#"name """#);
    refused(r#"{"byFlag": {"true": "?"}}"#, "by_flag[1]", r#"name "?""#);
    refused(r#"{"byNumber": {"7": {"deeper": {"zone": "?"}}}}"#, "by_number[7].deeper.zone", r#"name "?""#);
    refused(r#"{"inners": [{}, {"zone": "?"}]}"#, "inners[1].zone", r#"name "?""#);
    refused(r#"{"peers": "tier in ("}"#, "peers", "selector");
    // One is stated.
    refused(r#"{"policy": "p", "zones": ["a", "b", "c", "a"]}"#, "zones[2]", "refs: 5, at most 4 allowed");
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    let schemas = schemas();
    let deep = (0..200).fold(Vec::new(), |inner: Vec<u8>, _| {
        let mut bytes = vec![0x12];
        prost::encode_length_delimiter(inner.len(), &mut bytes).unwrap();
        [bytes, inner].concat()
    });
    let mut around = vec![0x2a];
    prost::encode_length_delimiter(deep.len(), &mut around).unwrap();
    let deep = [around, deep].concat();
    for bytes in [&b"\x0a\x05ab"[..], b"\x0a\x02a\xff", b"\x1a\x01\x0a", b"\x2a\x01\x0a", &deep] {
        let completed = schemas.declared().complete(&key("All/x"), bytes, Arc::default(), MAX);
        assert!(completed.unwrap_err().reason.to_string().contains("well-formed bytes"), "{bytes:x?}");
    }
}

#[test]
fn kinds_without_such_fields_are_not_looked_at() {
    let schemas = schemas();
    let covered: Vec<_> = schemas.kinds().into_iter().filter(|kind| schemas.declared().covers(kind)).collect();
    assert_eq!(covered, ["demo.All", "demo.Inner"]);
    // Not even their bytes.
    let stated = references("Zone/a ~Zone/a");
    let completed = schemas.declared().complete(&key("Zone/x"), b"\xff", stated.clone(), MAX).unwrap();
    assert_eq!(completed, stated);
}

#[test]
fn the_field_that_needs_an_object_is_found() {
    let schemas = schemas();
    let spec = encode(&schemas, r#"{"zones": ["a"], "inners": [{"zone": "b"}, {"zone": "a"}]}"#);
    let field = |needed: &str| schemas.declared().field_with(&key("All/x"), &spec, &key(needed));
    assert_eq!(field("Zone/a").as_deref(), Some("inners[1].zone"));
    assert_eq!(field("Zone/c"), None);
}

#[test]
fn a_field_that_cannot_refer_to_others_is_refused_with_its_schema() {
    let check = |field: &str, expected: &str| {
        let source = format!(
            "syntax = \"proto3\"; package demo; import \"nimbus/v1/options.proto\";
             message A {{ {field} }} message B {{ string zone = 1 [(nimbus.v1.refers) = {{kind: \"demo.A\"}}]; }}"
        );
        let error = Schemas::default()
            .register(&compile(&[("a.proto", &source)]), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected) && error.contains("demo.A.x"), "{error}");
    };
    check(r#"uint32 x = 1 [(nimbus.v1.refers) = {kind: "demo.B"}];"#, "only text");
    check(r#"B x = 1 [(nimbus.v1.refers) = {kind: "demo.B"}];"#, "only text");
    check(r#"map<string, bytes> x = 1 [(nimbus.v1.refers) = {kind: "demo.B"}];"#, "only text");
    check(r#"string x = 1 [(nimbus.v1.refers) = {weak: true}];"#, "kind \"\"");
    check(r#"string x = 1 [(nimbus.v1.refers) = {kind: "Two words"}];"#, "kind \"Two words\"");
    check(r#"string x = 1 [debug_redact = true, (nimbus.v1.refers) = {kind: "demo.B"}];"#, "secret");
    check("B x = 1 [debug_redact = true];", "secret");
}

#[test]
fn an_option_comes_and_goes_with_the_schema() {
    let with = r#"syntax = "proto3"; package demo; import "nimbus/v1/options.proto";
        message A { string b = 1 [(nimbus.v1.refers) = {kind: "demo.B"}]; }"#;
    let without = r#"syntax = "proto3"; package demo; message A { string b = 1; }"#;
    let schemas = Schemas::default();
    for (source, covered) in [(without, false), (with, true), (without, false)] {
        schemas.register(&compile(&[("a.proto", source)]), &[]).unwrap();
        assert_eq!(schemas.declared().covers("demo.A"), covered);
    }
    // A copy of our file changes nothing, wherever it comes from.
    let set = compile(&[("a.proto", with)]);
    assert_eq!(schemas.register(&set, &[]).unwrap(), ["demo.A"]);
    assert!(schemas.declared().covers("demo.A"));
}

#[test]
fn a_file_that_gets_the_option_through_another_one_is_understood() {
    let through = r#"syntax = "proto3"; package demo; import public "nimbus/v1/options.proto";"#;
    let source = r#"syntax = "proto3"; package demo; import "through.proto";
        message A { string b = 1 [(nimbus.v1.refers) = {kind: "demo.B"}]; }"#;
    let schemas = Schemas::default();
    schemas
        .register(&compile(&[("a.proto", source), ("through.proto", through)]), &[])
        .unwrap();
    assert!(schemas.declared().covers("demo.A"));
}
