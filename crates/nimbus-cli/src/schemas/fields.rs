//! The JSON form of a message, field by field.

use prost_reflect::{ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;

/// A field in the JSON form of a message.
pub(super) struct Place<'a> {
    /// The message that it is a field of.
    pub(super) message: &'a MessageDescriptor,
    /// How the JSON form calls it.
    pub(super) name: &'a str,
    pub(super) field: Field,
    /// The way to it from the outermost message, as a JSON pointer.
    pub(super) path: &'a str,
}

/// A field of a message, or an extension of it.
#[derive(Debug, Clone)]
pub(super) enum Field {
    Own(FieldDescriptor),
    Extension(ExtensionDescriptor),
}

/// Shows `visit` every field that is set, wherever its message is: in a list, a map, or packed. What it says is whether to go
/// on within the field.
pub(super) fn each(
    json: &mut Value,
    message: &MessageDescriptor,
    visit: &mut dyn FnMut(&Place<'_>, &mut Value) -> bool,
) {
    each_in(json, message, &mut String::new(), visit);
}

fn each_in(
    json: &mut Value,
    message: &MessageDescriptor,
    path: &mut String,
    visit: &mut dyn FnMut(&Place<'_>, &mut Value) -> bool,
) {
    let Value::Object(members) = json else { return };
    if message.full_name() == "google.protobuf.Any" {
        let name = members.get("@type").and_then(Value::as_str).and_then(|url| url.rsplit('/').next());
        if let Some(packed) = name.and_then(|name| message.parent_pool().get_message_by_name(name)) {
            each_in(json, &packed, path, visit);
        }
        return;
    }
    // The others of these have a JSON form that has nothing to do with their fields.
    if message.full_name().starts_with("google.protobuf.") {
        return;
    }
    for (name, value) in members {
        let Some(field) = Field::find(message, name) else { continue };
        let end = path.len();
        push(path, name);
        let place = Place { message, name, field, path };
        if visit(&place, value) {
            let Place { field, .. } = place;
            below(value, &field, path, visit);
        }
        path.truncate(end);
    }
}

fn below(value: &mut Value, field: &Field, path: &mut String, visit: &mut dyn FnMut(&Place<'_>, &mut Value) -> bool) {
    let Kind::Message(inner) = field.kind() else { return };
    let end = path.len();
    match value {
        Value::Object(entries) if field.is_map() => {
            let Kind::Message(inner) = inner.map_entry_value_field().kind() else { return };
            for (name, value) in entries {
                push(path, name);
                each_in(value, &inner, path, visit);
                path.truncate(end);
            }
        }
        // A ListValue is a list, too, and has no fields to look at.
        Value::Array(values) => {
            for (index, value) in values.iter_mut().enumerate() {
                push(path, &index.to_string());
                each_in(value, &inner, path, visit);
                path.truncate(end);
            }
        }
        value => each_in(value, &inner, path, visit),
    }
}

fn push(path: &mut String, name: &str) {
    path.push('/');
    path.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

// === impl Field ===

impl Field {
    /// The field that the JSON form calls `name`. That of an extension is in brackets.
    pub(super) fn find(message: &MessageDescriptor, name: &str) -> Option<Self> {
        if let Some(field) = message.get_field_by_json_name(name).or_else(|| message.get_field_by_name(name)) {
            return Some(Self::Own(field));
        }
        let name = name.strip_prefix('[')?.strip_suffix(']')?;
        message.extensions().find(|extension| extension.full_name() == name).map(Self::Extension)
    }

    pub(super) fn number(&self) -> u32 {
        match self {
            Self::Own(field) => field.number(),
            Self::Extension(extension) => extension.number(),
        }
    }

    pub(super) fn full_name(&self) -> &str {
        match self {
            Self::Own(field) => field.full_name(),
            Self::Extension(extension) => extension.full_name(),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Own(field) => field.kind(),
            Self::Extension(extension) => extension.kind(),
        }
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self, Self::Own(field) if field.is_map())
    }

    pub(super) fn is_list(&self) -> bool {
        match self {
            Self::Own(field) => field.is_list(),
            Self::Extension(extension) => extension.is_list(),
        }
    }

    /// Whether the schema says that nobody should read it over a shoulder.
    pub(super) fn is_secret(&self) -> bool {
        /// Number of `FieldOptions.debug_redact`.
        const DEBUG_REDACT: u32 = 16;

        let options = match self {
            Self::Own(field) => field.options(),
            Self::Extension(extension) => extension.options(),
        };
        options
            .get_field_by_number(DEBUG_REDACT)
            .is_some_and(|value| value.as_bool() == Some(true))
    }

    /// The group of fields of which only one can be set.
    pub(super) fn oneof(&self) -> Option<String> {
        match self {
            Self::Own(field) => field.containing_oneof().map(|oneof| oneof.full_name().to_owned()),
            Self::Extension(_) => None,
        }
    }
}
