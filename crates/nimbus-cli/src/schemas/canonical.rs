//! One encoding for each message: fields in the order of their numbers, maps in the order of their keys. Who publishes the same
//! twice then publishes the same bytes, and the bus finds nothing changed.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint},
};
use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage as _, Value};

/// The bytes of a message without unknown fields.
pub(crate) fn encode(message: &DynamicMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let empty = || DynamicMessage::new(message.descriptor());
    for (field, value) in message.fields() {
        if !put(field.number(), field.is_group(), &field.kind(), value, &mut bytes) {
            let mut alone = empty();
            alone.set_field(&field, value.clone());
            bytes.extend(alone.encode_to_vec());
        }
    }
    for (extension, value) in message.extensions() {
        if !put(extension.number(), extension.is_group(), &extension.kind(), value, &mut bytes) {
            let mut alone = empty();
            alone.set_extension(&extension, value.clone());
            bytes.extend(alone.encode_to_vec());
        }
    }
    bytes
}

/// Adds messages, lists of messages and maps. All others have one encoding anyway.
fn put(number: u32, is_group: bool, kind: &Kind, value: &Value, bytes: &mut Vec<u8>) -> bool {
    match (value, kind) {
        (Value::Message(inner), _) => put_message(number, is_group, inner, bytes),
        (Value::List(items), Kind::Message(_)) => {
            let inner = items.iter().filter_map(Value::as_message);
            inner.for_each(|inner| put_message(number, is_group, inner, bytes));
        }
        (Value::Map(entries), Kind::Message(entry)) => {
            let mut sorted: Vec<(&MapKey, &Value)> = entries.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| compare(a, b));
            for (key, value) in sorted {
                let mut message = DynamicMessage::new(entry.clone());
                message.set_field(&entry.map_entry_key_field(), key.clone().into());
                message.set_field(&entry.map_entry_value_field(), value.clone());
                put_message(number, false, &message, bytes);
            }
        }
        _ => return false,
    }
    true
}

fn put_message(number: u32, is_group: bool, message: &DynamicMessage, bytes: &mut Vec<u8>) {
    let inner = encode(message);
    if is_group {
        encode_key(number, WireType::StartGroup, bytes);
        bytes.extend(inner);
        encode_key(number, WireType::EndGroup, bytes);
    } else {
        encode_key(number, WireType::LengthDelimited, bytes);
        encode_varint(inner.len() as u64, bytes);
        bytes.extend(inner);
    }
}

/// The order of keys, as those who encode in order have it.
fn compare(a: &MapKey, b: &MapKey) -> Ordering {
    match (a, b) {
        (MapKey::Bool(a), MapKey::Bool(b)) => a.cmp(b),
        (MapKey::I32(a), MapKey::I32(b)) => a.cmp(b),
        (MapKey::I64(a), MapKey::I64(b)) => a.cmp(b),
        (MapKey::U32(a), MapKey::U32(b)) => a.cmp(b),
        (MapKey::U64(a), MapKey::U64(b)) => a.cmp(b),
        (MapKey::String(a), MapKey::String(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}
