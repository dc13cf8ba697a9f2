//! What is packed in a `google.protobuf.Any`.

use std::collections::BTreeSet;

use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, ReflectMessage as _, SerializeOptions, Value as Field,
};
use prost_types::Any;
use serde_json::Value;

use crate::schemas::{
    fields,
    secrets::{Secrets, redact},
};

/// What was packed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// In the JSON form of protobuf.
    Json(Value),
    /// Of a type that nobody has registered.
    Bytes(Vec<u8>),
}

/// How deep messages are looked into for others that are packed in them.
pub(super) const MAX_DEPTH: usize = 16;

/// The full name of the message that is packed.
pub(crate) fn kind_of(any: &Any) -> &str {
    any.type_url.rsplit('/').next().unwrap_or_default()
}

pub(super) fn read(any: &Any, pool: &DescriptorPool, secrets: Secrets) -> Content {
    let json = decode(any, pool).and_then(|message| {
        let mut json = message
            .serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new())
            .ok()?;
        order(&mut json, &message.descriptor());
        if secrets == Secrets::Hidden {
            redact(&mut json, &message.descriptor());
        }
        Some(json)
    });
    json.map_or_else(|| Content::Bytes(any.value.clone()), Content::Json)
}

/// Puts maps into the order of their keys, so that the same message always looks the same.
fn order(json: &mut Value, message: &MessageDescriptor) {
    fields::each(json, message, &mut |place, value| {
        if let (true, Value::Object(entries)) = (place.field.is_map(), value) {
            entries.sort_keys();
        }
        true
    });
}

/// Collects the types, packed in one another, that the pool does not know.
pub(super) fn missing_types(any: &Any, pool: &DescriptorPool, missing: &mut BTreeSet<String>) {
    missing_at(any, pool, missing, 0);
}

fn missing_at(any: &Any, pool: &DescriptorPool, missing: &mut BTreeSet<String>, depth: usize) {
    if pool.get_message_by_name(kind_of(any)).is_none() {
        missing.insert(kind_of(any).to_owned());
    } else if let Some(message) = decode(any, pool) {
        missing_in(&message, pool, missing, depth + 1);
    }
}

fn missing_in(message: &DynamicMessage, pool: &DescriptorPool, missing: &mut BTreeSet<String>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    if message.descriptor().full_name() == "google.protobuf.Any" {
        if let Ok(any) = message.transcode_to::<Any>() {
            missing_at(&any, pool, missing, depth);
        }
        return;
    }
    let values = message
        .fields()
        .map(|(_, value)| value)
        .chain(message.extensions().map(|(_, value)| value));
    values.for_each(|value| missing_in_value(value, pool, missing, depth));
}

fn missing_in_value(value: &Field, pool: &DescriptorPool, missing: &mut BTreeSet<String>, depth: usize) {
    match value {
        Field::Message(inner) => missing_in(inner, pool, missing, depth + 1),
        Field::List(values) => values.iter().for_each(|value| missing_in_value(value, pool, missing, depth)),
        Field::Map(values) => values.values().for_each(|value| missing_in_value(value, pool, missing, depth)),
        _ => {}
    }
}

pub(super) fn decode(any: &Any, pool: &DescriptorPool) -> Option<DynamicMessage> {
    DynamicMessage::decode(pool.get_message_by_name(kind_of(any))?, &*any.value).ok()
}
