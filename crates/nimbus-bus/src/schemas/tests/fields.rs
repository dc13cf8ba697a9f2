//! Single fields by path, as filters use them.

use prost::Message as _;
use prost_reflect::DynamicMessage;

use crate::schemas::{Schemas, tests::compile};

const SOURCE: &str = r#"syntax = "proto3";
package demo;
message Spec {
  string zone = 1;
  string display_name = 2;
  bool on = 3;
  Tier tier = 4;
  int32 i32 = 5;
  uint64 u64 = 6;
  sint32 s32 = 7;
  sfixed64 sf64 = 8;
  float real = 9;
  double big = 10;
  optional uint32 limit = 11;
  Inner inner = 12;
  repeated string tags = 13;
  map<string, string> labels = 14;
  bytes blob = 15;
  oneof via { Inner tcp = 16; string udp = 17; }
  sint64 s64 = 18;
  fixed32 f32 = 19;
  sfixed32 sf32 = 20;
  fixed64 f64 = 21;
  int64 i64 = 22;
  string token = 23 [debug_redact = true];
  Inner vault = 24 [debug_redact = true];
}
message Inner { uint32 port = 1; Inner deeper = 2; string name = 3; }
enum Tier { TIER_UNSPECIFIED = 0; TIER_WEB = 1; TIER_LOWEST = -1; }"#;

fn schemas() -> Schemas {
    let schemas = Schemas::default();
    schemas.register(&compile(&[("demo.proto", SOURCE)]), &[]).unwrap();
    schemas
}

/// A message from its JSON.
fn encode(schemas: &Schemas, json: &str) -> Vec<u8> {
    let descriptor = schemas.snapshot().pool.get_message_by_name("demo.Spec").unwrap();
    let mut json = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(descriptor, &mut json).unwrap().encode_to_vec()
}

#[test]
fn a_value_is_read_as_text() {
    let schemas = schemas();
    let check = |json: &str, path: &str, expected: Option<&str>| {
        let path: Vec<_> = path.split('.').collect();
        assert_eq!(schemas.field("demo.Spec", &encode(&schemas, json), &path).as_deref(), expected, "{path:?} {json}");
    };
    check(r#"{"zone": "a"}"#, "zone", Some("a"));
    check(r#"{"displayName": "é"}"#, "display_name", Some("é"));
    check(r#"{"displayName": "é"}"#, "displayName", Some("é"));
    check(r#"{"on": true}"#, "on", Some("true"));
    check(r#"{"tier": "TIER_WEB"}"#, "tier", Some("TIER_WEB"));
    check(r#"{"tier": "TIER_LOWEST"}"#, "tier", Some("TIER_LOWEST"));
    check(r#"{"tier": 77}"#, "tier", Some("77"));
    for (field, values) in [
        ("i32", ["-1", "2147483647", "-2147483648"]),
        ("s32", ["-1", "2147483647", "-2147483648"]),
        ("sf32", ["-1", "2147483647", "-2147483648"]),
        ("i64", ["-1", "9223372036854775807", "-9223372036854775808"]),
        ("s64", ["-1", "9223372036854775807", "-9223372036854775808"]),
        ("sf64", ["-1", "9223372036854775807", "-9223372036854775808"]),
        ("u64", ["1", "18446744073709551615", "0"]),
        ("f64", ["1", "18446744073709551615", "0"]),
        ("f32", ["1", "4294967295", "0"]),
    ] {
        for value in values {
            check(&format!(r#"{{"{field}": "{value}"}}"#), field, Some(value));
        }
    }
    check(r#"{"real": 1.5}"#, "real", Some("1.5"));
    check(r#"{"big": 2}"#, "big", Some("2"));
    check(r#"{"big": "-Infinity"}"#, "big", Some("-Infinity"));
    check(r#"{"real": "NaN"}"#, "real", Some("NaN"));
    check(r#"{"inner": {"port": 80, "deeper": {"name": "x"}}}"#, "inner.port", Some("80"));
    check(r#"{"inner": {"port": 80, "deeper": {"name": "x"}}}"#, "inner.deeper.name", Some("x"));
}

#[test]
fn what_is_not_set_is_its_default_or_nothing() {
    let schemas = schemas();
    let check = |json: &str, path: &str, expected: Option<&str>| {
        let path: Vec<_> = path.split('.').collect();
        assert_eq!(schemas.field("demo.Spec", &encode(&schemas, json), &path).as_deref(), expected, "{path:?} {json}");
    };
    check("{}", "zone", Some(""));
    check("{}", "on", Some("false"));
    check("{}", "tier", Some("TIER_UNSPECIFIED"));
    check("{}", "s32", Some("0"));
    check("{}", "real", Some("0"));
    check("{}", "sf64", Some("0"));
    check("{}", "limit", None);
    check(r#"{"limit": 0}"#, "limit", Some("0"));
    check("{}", "inner.port", None);
    check(r#"{"inner": {}}"#, "inner.port", Some("0"));
    check(r#"{"inner": {}}"#, "inner.deeper.port", None);
    check(r#"{"udp": "x"}"#, "tcp.port", None);
    check(r#"{"tcp": {}}"#, "udp", None);
}

#[test]
fn what_comes_later_on_the_wire_overrides() {
    let schemas = schemas();
    let check = |bytes: &[u8], path: &[&str], expected: Option<&str>| {
        assert_eq!(schemas.field("demo.Spec", bytes, path).as_deref(), expected, "{path:?} {bytes:x?}");
    };
    check(b"\x0a\x01a\x0a\x01b", &["zone"], Some("b"));
    // A message that comes twice is merged: inner.port = 1, then inner.name = "x".
    check(b"\x62\x02\x08\x01\x62\x03\x1a\x01x", &["inner", "port"], Some("1"));
    // Of a oneof the last counts: tcp.port = 1, udp = "x", then tcp with nothing in it.
    check(b"\x82\x01\x02\x08\x01\x8a\x01\x01x", &["tcp", "port"], None);
    check(b"\x82\x01\x02\x08\x01\x8a\x01\x01x", &["udp"], Some("x"));
    check(b"\x82\x01\x02\x08\x01\x8a\x01\x01x\x82\x01\x00", &["tcp", "port"], Some("0"));
    check(b"\x82\x01\x02\x08\x01\x8a\x01\x01x\x82\x01\x00", &["udp"], None);
    // Malformed after the value.
    check(b"\x0a\x01a\xff", &["zone"], None);
    // A varint where a string belongs.
    check(b"\x08\x01", &["zone"], None);
}

#[test]
fn a_path_that_cannot_be_read_says_why() {
    let schemas = schemas();
    let check = |path: &str, expected: Result<(), &str>| {
        let path: Vec<_> = path.split('.').filter(|part| !part.is_empty()).collect();
        assert_eq!(schemas.check_field("demo.Spec", &path), expected.map_err(ToOwned::to_owned), "{path:?}");
        assert_eq!(schemas.has_field("demo.Spec", &path), expected.is_ok());
        if expected.is_err_and(|why| !why.contains("secret")) {
            assert_eq!(schemas.field("demo.Spec", b"", &path), None);
        }
    };
    check("zone", Ok(()));
    check("inner.deeper.port", Ok(()));
    check("zoen", Err("demo.Spec has no field zoen (did you mean zone?)"));
    check("inner.Port", Err("demo.Inner has no field Port (did you mean port?)"));
    check("inner.qqqqqq", Err("demo.Inner has no field qqqqqq"));
    check("zone.x", Err("field demo.Spec.zone is a string and has no fields"));
    check("inner", Err("field demo.Spec.inner is a message, name a field of demo.Inner"));
    check("tags", Err("field demo.Spec.tags is repeated, only single values can be compared"));
    check("labels.x", Err("field demo.Spec.labels is repeated, only single values can be compared"));
    check("blob", Err("field demo.Spec.blob is bytes, which have no text"));
    check("", Err("the path names no field"));
    check("token", Err("field demo.Spec.token is secret (debug_redact) and cannot be compared"));
    check("vault.name", Err("field demo.Spec.vault is secret (debug_redact) and cannot be compared"));
    let expected = "kind demo.Nothing is not registered, so its fields are unknown";
    assert_eq!(schemas.check_field("demo.Nothing", &["zone"]), Err(expected.to_owned()));
    assert_eq!(schemas.field("demo.Nothing", b"", &["zone"]), None);
    assert_eq!(schemas.nearest_kind("demo.Spek").as_deref(), Some("demo.Spec"));
}
