//! The walk finds what a decoder finds, whatever an encoder does.

use std::{collections::BTreeSet, sync::Arc};

use proptest::{collection::vec, prelude::*};
use prost_reflect::{DynamicMessage, Value};

use super::{key, schemas};

/// A field as an encoder may write it, whether it is of the message or not.
#[derive(Debug, Clone)]
enum Written {
    Number(u32, u64),
    Text(u32, String),
    Message(u32, Vec<Written>),
    /// An entry of a map: the key, and fields that may be its value.
    Entry(u32, u64, Vec<Written>),
}

/// Names in a message as they are found after it was decoded.
fn names(message: &DynamicMessage, found: &mut BTreeSet<(String, bool)>) {
    for (field, value) in message.fields() {
        let weak = matches!(field.name(), "zones" | "maybe");
        let kind = match field.name() {
            "policy" | "first" | "maybe" => "Policy",
            "zones" | "by_name" | "by_flag" | "zone" => "Zone",
            _ => "",
        };
        let mut text = |text: &str| {
            if !kind.is_empty() && !text.is_empty() {
                found.insert((format!("{kind}/{text}"), weak));
            }
        };
        match value {
            Value::String(value) => text(value),
            Value::List(values) => values.iter().filter_map(Value::as_str).for_each(&mut text),
            Value::Map(values) => values.values().filter_map(Value::as_str).for_each(&mut text),
            _ => {}
        }
        match value {
            Value::Message(inner) => names(inner, found),
            Value::List(values) => values.iter().filter_map(Value::as_message).for_each(|inner| names(inner, found)),
            Value::Map(values) => values.values().filter_map(Value::as_message).for_each(|inner| names(inner, found)),
            _ => {}
        }
    }
}

fn tag(bytes: &mut Vec<u8>, number: u32, wire_type: u32) {
    prost::encoding::encode_varint(u64::from(number << 3 | wire_type), bytes);
}

fn encode(fields: &[Written]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let put = |bytes: &mut Vec<u8>, number, content: &[u8]| {
        tag(bytes, number, 2);
        prost::encoding::encode_varint(content.len() as u64, bytes);
        bytes.extend_from_slice(content);
    };
    for field in fields {
        match field {
            Written::Number(number, value) => {
                tag(&mut bytes, *number, 0);
                prost::encoding::encode_varint(*value, &mut bytes);
            }
            Written::Text(number, text) => put(&mut bytes, *number, text.as_bytes()),
            Written::Message(number, fields) => put(&mut bytes, *number, &encode(fields)),
            Written::Entry(number, key, fields) => {
                let key = match number {
                    3 => Written::Text(1, format!("k{}", key % 3)),
                    // Wider than the key is.
                    _ => Written::Number(1, *key),
                };
                put(&mut bytes, *number, &[encode(&[key]), encode(fields)].concat());
            }
        }
    }
    bytes
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-d]", 1 => "", 1 => "[ab]/[cd]"]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-d]", 1 => "[ab]/[cd]"]
}

/// Fields of `demo.Inner`.
fn inner() -> impl Strategy<Value = Vec<Written>> {
    let leaf = prop_oneof![
        text().prop_map(|text| Written::Text(1, text)),
        text().prop_map(|text| Written::Text(3, text)),
        (4_u32..9, any::<u64>()).prop_map(|(number, value)| Written::Number(number, value)),
    ];
    let field = leaf.prop_recursive(3, 12, 3, |field| vec(field, 0..4).prop_map(|inner| Written::Message(2, inner)));
    vec(field, 0..4)
}

/// Fields of `demo.All`.
fn all() -> impl Strategy<Value = Vec<Written>> {
    let numbers = prop_oneof![0_u64..3, any::<u32>().prop_map(|low| u64::from(low) | 1 << 40), Just(1 << 32)];
    let values = || vec(name().prop_map(|name| Written::Text(2, name)), 1..3);
    let inner_value = vec(inner().prop_map(|inner| Written::Message(2, inner)), 0..3);
    let field = prop_oneof![
        (prop_oneof![Just(1_u32), Just(8), Just(11), Just(12)], text())
            .prop_map(|(number, text)| Written::Text(number, text)),
        name().prop_map(|name| Written::Text(2, name)),
        (prop_oneof![Just(5_u32), Just(6), Just(9), Just(13)], inner())
            .prop_map(|(number, inner)| Written::Message(number, inner)),
        any::<u64>().prop_map(|value| Written::Number(10, value)),
        (prop_oneof![Just(3_u32), Just(14)], numbers.clone(), values())
            .prop_map(|(number, key, value)| Written::Entry(number, key, value)),
        (numbers, inner_value).prop_map(|(key, value)| Written::Entry(4, key, value)),
    ];
    vec(field, 0..8)
}

proptest! {
    #[test]
    fn the_walk_finds_what_a_decoder_finds(fields in all()) {
        let schemas = schemas();
        let descriptor = schemas.snapshot().pool.get_message_by_name("demo.All").unwrap();
        let bytes = encode(&fields);
        let decoded = DynamicMessage::decode(descriptor, &*bytes).unwrap();
        let mut expected = BTreeSet::new();
        names(&decoded, &mut expected);
        // Strong wins.
        let strong = expected.clone();
        expected.retain(|(name, weak)| !weak || !strong.contains(&(name.clone(), false)));
        let found = schemas.declared().complete(&key("All/x"), &bytes, Arc::default(), 1_000).unwrap();
        let found: BTreeSet<_> = found
            .iter()
            .map(|reference| (reference.to.to_string().replace("demo.", ""), reference.weak))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
