//! Fields that a schema does not know: a newer publisher wrote them, and the JSON form lacks them.

use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage as _, UnknownField, Value};
use prost_types::Any;

use crate::schemas::packed::{MAX_DEPTH, decode};

/// More are not named; one is enough to refuse.
const MAX_NAMED: usize = 8;

/// The numbers of such fields, with the way to them.
pub(super) fn unknown_fields(any: &Any, pool: &DescriptorPool) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(message) = decode(any, pool) {
        collect(&message, pool, "", 0, &mut found);
    }
    found
}

fn collect(message: &DynamicMessage, pool: &DescriptorPool, path: &str, depth: usize, found: &mut Vec<String>) {
    if depth > MAX_DEPTH || found.len() >= MAX_NAMED {
        return;
    }
    if message.descriptor().full_name() == "google.protobuf.Any"
        && let Ok(any) = message.transcode_to::<Any>()
        && let Some(inner) = decode(&any, pool)
    {
        return collect(&inner, pool, path, depth + 1, found);
    }
    let mut numbers: Vec<u32> = message.unknown_fields().map(UnknownField::number).collect();
    numbers.dedup();
    found.extend(numbers.iter().map(|number| format!("{path}{number}")));
    for (field, value) in message.fields() {
        collect_value(value, pool, &format!("{path}{}", field.json_name()), depth, found);
    }
    for (extension, value) in message.extensions() {
        collect_value(value, pool, &format!("{path}[{}]", extension.full_name()), depth, found);
    }
    found.truncate(MAX_NAMED);
}

fn collect_value(value: &Value, pool: &DescriptorPool, path: &str, depth: usize, found: &mut Vec<String>) {
    match value {
        Value::Message(inner) => collect(inner, pool, &format!("{path}."), depth + 1, found),
        Value::List(values) => {
            for (index, value) in values.iter().enumerate() {
                collect_value(value, pool, &format!("{path}[{index}]"), depth, found);
            }
        }
        Value::Map(values) => {
            for value in values.values() {
                collect_value(value, pool, &format!("{path}[]"), depth, found);
            }
        }
        _ => {}
    }
}
