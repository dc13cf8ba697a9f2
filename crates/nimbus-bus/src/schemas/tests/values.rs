//! Whether bytes are a message, and where they are not.

use proptest::prelude::*;
use prost_reflect::DynamicMessage;

use crate::schemas::{Schemas, tests::compile};

const SOURCE: &str = r#"syntax = "proto3";
package demo;
message All {
  string text = 1;
  bytes blob = 2;
  int32 number = 3;
  fixed32 word = 4;
  double real = 5;
  Inner inner = 6;
  repeated Inner items = 7;
  repeated uint32 packed = 8;
  repeated fixed64 words = 9;
  map<string, Inner> by_name = 10;
  repeated string texts = 11;
  bool flag = 12;
}
message Inner { string text = 1; Inner inner = 2; sint64 offset = 3; }"#;

fn schemas() -> Schemas {
    let schemas = Schemas::default();
    schemas.register(&compile(&[("demo.proto", SOURCE)]), &[]).unwrap();
    schemas
}

#[test]
fn bytes_of_a_kind_that_nobody_registered_are_accepted() {
    assert_eq!(Schemas::default().check("demo.All", b"\xff\xff"), Ok(()));
}

#[test]
fn a_fault_is_located() {
    let schemas = schemas();
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(schemas.check("demo.All", bytes), Err(format!("not a demo.All: {expected}")), "{bytes:x?}");
    };
    check(b"\x00", "at byte 0: not a field tag");
    check(b"\x18\x01\x0f", "at byte 2: not a field tag");
    check(b"\x0a\x05ab", "at byte 0: expected 5 bytes, 2 are left");
    check(b"\x18\xff", "at byte 1: not a varint");
    check(b"\x25\x01", "at byte 1: expected 4 bytes, 1 are left");
    check(b"\x08\x01", "field text at byte 0: expected a length and bytes (string), found a varint");
    check(b"\x1a\x01a", "field number at byte 0: expected a varint (int32), found a length and 1 bytes");
    check(b"\x20\x01", "field word at byte 0: expected a fixed 32-bit value (fixed32), found a varint");
    check(b"\x0a\x03ab\xff", "field text at byte 4: not UTF-8");
    check(b"\x32\x02\x12\x05", "field inner at byte 2: expected 5 bytes, 0 are left");
    check(b"\x32\x05\x12\x03\x0a\x01\xff", "field inner.inner.text at byte 6: not UTF-8");
    check(
        b"\x3a\x00\x3a\x00\x3a\x02\x08\x01",
        "field items[2].text at byte 6: expected a length and bytes (string), found a varint",
    );
    check(b"\x42\x02\x01\xff", "field packed[0] at byte 3: not a varint");
    check(b"\x4a\x03abc", "field words[0] at byte 2: 3 bytes are not a list of 8-byte values");
    check(
        b"\x52\x04\x12\x02\x08\x01",
        "field by_name[0].value.text at byte 4: expected a length and bytes (string), found a varint",
    );
    check(b"\x33\x34", "field inner at byte 0: expected a length and bytes (demo.Inner), found a group");
    check(b"\xa3\x06", "at byte 0: a group does not end");
    check(b"\xa3\x06\xac\x06", "at byte 2: another group ends than began");
    check(b"\xa4\x06", "at byte 0: a group ends that did not begin");
}

#[test]
fn unknown_fields_and_both_ways_to_write_a_list_are_accepted() {
    let schemas = schemas();
    for bytes in [&b""[..], b"\xa0\x06\x01", b"\xa3\x06\x08\x01\xa4\x06", b"\x42\x02\x01\x02", b"\x40\x01\x40\x02"] {
        assert_eq!(schemas.check("demo.All", bytes), Ok(()), "{bytes:x?}");
    }
}

#[test]
fn nesting_is_limited() {
    let schemas = schemas();
    let nested = |tag: u8, depth: usize| {
        let mut message = Vec::new();
        for _ in 0..depth {
            let mut outer = vec![tag];
            prost::encoding::encode_varint(message.len() as u64, &mut outer);
            outer.extend(message);
            message = outer;
        }
        message
    };
    assert_eq!(schemas.check("demo.Inner", &nested(0x12, 99)), Ok(()));
    let error = schemas.check("demo.Inner", &nested(0x12, 100)).unwrap_err();
    assert!(error.ends_with("nested too deeply"), "{error}");
    let groups = [vec![0x7b; 200_000], vec![0x7c; 200_000]].concat();
    assert!(schemas.check("demo.Inner", &groups).unwrap_err().ends_with("nested too deeply"));
}

#[test]
fn required_fields_are_required() {
    let source = "syntax = \"proto2\"; package old;
        message A { required int32 x = 1; optional group G = 2 { required string y = 1; } }";
    let schemas = Schemas::default();
    schemas.register(&compile(&[("old.proto", source)]), &[]).unwrap();
    let check = |bytes: &[u8], expected: Result<(), &str>| {
        assert_eq!(schemas.check("old.A", bytes), expected.map_err(|error| format!("not a old.A: {error}")));
    };
    check(b"\x08\x01", Ok(()));
    check(b"\x08\x01\x13\x0a\x00\x14", Ok(()));
    check(b"", Err("at byte 0: required field x of the message is missing"));
    check(b"\x08\x01\x13\x14", Err("field g at byte 3: required field y of the message is missing"));
    check(b"\x08\x01\x12\x00", Err("field g at byte 2: expected a group (old.A.G), found a length and 0 bytes"));
}

fn message_bytes() -> impl Strategy<Value = Vec<u8>> {
    let record = prop_oneof![
        any::<Vec<u8>>(),
        (0u8..16, 0u8..6, any::<u8>()).prop_map(|(number, wire_type, byte)| vec![number << 3 | wire_type, byte]),
        (1u8..16, prop::collection::vec(prop_oneof![Just(0x0au8), Just(1), Just(0x12), any::<u8>()], 0..12))
            .prop_map(|(number, content)| [vec![number << 3 | 2, content.len() as u8], content].concat()),
        (1u8..16, any::<[u8; 4]>()).prop_map(|(number, word)| [vec![number << 3 | 5], word.to_vec()].concat()),
        (1u8..16, any::<[u8; 8]>()).prop_map(|(number, word)| [vec![number << 3 | 1], word.to_vec()].concat()),
    ];
    prop::collection::vec(record, 0..6).prop_map(|records| records.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn check_agrees_with_a_real_decoder(bytes in message_bytes()) {
        thread_local!(static SCHEMAS: Schemas = schemas());
        SCHEMAS.with(|schemas| {
            let descriptor = schemas.snapshot().pool.get_message_by_name("demo.All").unwrap();
            let decoded = DynamicMessage::decode(descriptor, bytes.as_slice());
            let checked = schemas.check("demo.All", &bytes);
            // Prost takes whatever follows the tag of a map for an entry of it, be it a number or a length.
            let strange_map = bytes.iter().any(|byte| matches!(byte, 0x50 | 0x51 | 0x53..=0x57));
            if strange_map || matches!(&checked, Err(error) if error.contains("ByNameEntry")) {
                return Ok(());
            }
            prop_assert_eq!(checked.is_ok(), decoded.is_ok(), "{:x?}: {:?}, {:?}", bytes, checked, decoded.err());

            if let Ok(message) = decoded {
                let inner = message.get_field_by_name("inner").unwrap();
                let inner = inner.as_message().unwrap();
                let offset = inner.get_field_by_name("offset").unwrap().as_i64().unwrap().to_string();
                let expected = message.has_field_by_name("inner").then_some(offset);
                prop_assert_eq!(schemas.field("demo.All", &bytes, &["inner", "offset"]), expected);
                let text = message.get_field_by_name("text").unwrap().as_str().unwrap().to_owned();
                prop_assert_eq!(schemas.field("demo.All", &bytes, &["text"]), Some(text));
            }
            Ok(())
        })?;
    }
}
