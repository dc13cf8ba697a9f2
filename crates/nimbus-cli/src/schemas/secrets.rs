//! Fields that nobody should read over a shoulder, or find in a log.
//!
//! A schema marks them with the option that protobuf has for that: `string token = 1 [debug_redact = true];`.

use prost_reflect::{DynamicMessage, ExtensionDescriptor, Kind, MessageDescriptor};
use serde_json::Value;

/// Whether secrets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Hidden,
    Shown,
}

/// What stands for a secret.
pub(crate) const SECRET: &str = "<secret>";

/// Number of `FieldOptions.debug_redact`.
const DEBUG_REDACT: u32 = 16;

/// Replaces secrets in the JSON form of a message, whatever their type.
pub(super) fn redact(json: &mut Value, message: &MessageDescriptor) {
    let Value::Object(members) = json else { return };
    if message.full_name() == "google.protobuf.Any" {
        let name = members.get("@type").and_then(Value::as_str).and_then(|url| url.rsplit('/').next());
        if let Some(packed) = name.and_then(|name| message.parent_pool().get_message_by_name(name)) {
            redact(json, &packed);
        }
        return;
    }
    // The others of these have a JSON form that has nothing to do with their fields.
    if message.full_name().starts_with("google.protobuf.") {
        return;
    }
    for (name, value) in members {
        if let Some(field) = message.get_field_by_json_name(name) {
            redact_field(value, is_secret(&field.options()), &field.kind(), field.is_map());
        } else if let Some(extension) = extension(message, name) {
            redact_field(value, is_secret(&extension.options()), &extension.kind(), false);
        }
    }
}

fn redact_field(value: &mut Value, secret: bool, kind: &Kind, is_map: bool) {
    if secret {
        *value = Value::from(SECRET);
        return;
    }
    let Kind::Message(inner) = kind else { return };
    match value {
        Value::Object(entries) if is_map => {
            let Kind::Message(inner) = inner.map_entry_value_field().kind() else { return };
            entries.values_mut().for_each(|value| redact(value, &inner));
        }
        // A ListValue is a list, too, and has no fields to look at.
        Value::Array(values) => values.iter_mut().for_each(|value| redact(value, inner)),
        value => redact(value, inner),
    }
}

/// In JSON, the name of an extension is in brackets.
fn extension(message: &MessageDescriptor, name: &str) -> Option<ExtensionDescriptor> {
    let name = name.strip_prefix('[')?.strip_suffix(']')?;
    message.extensions().find(|extension| extension.full_name() == name)
}

fn is_secret(options: &DynamicMessage) -> bool {
    options
        .get_field_by_number(DEBUG_REDACT)
        .is_some_and(|value| value.as_bool() == Some(true))
}
