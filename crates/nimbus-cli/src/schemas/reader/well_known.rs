//! Messages whose JSON form has nothing to do with their fields.

use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use serde_json::{Map, Number, Value as Json};

use crate::{
    document::{Content, Entry, Node},
    schemas::{canonical, reader::Reader},
};

const PREFIX: &str = "google.protobuf.";

#[rustfmt::skip]
const WELL_KNOWN: &[&str] = &[
    "Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue", "DoubleValue", "FloatValue", "Int64Value",
    "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue",
];

/// How types are named if nobody says where they come from.
pub(crate) const TYPE_PREFIX: &str = "type.googleapis.com/";

// === impl Reader ===

impl Reader<'_> {
    /// Reads such a message, if it is one.
    pub(super) fn well_known(&mut self, node: &Node, descriptor: &MessageDescriptor) -> Option<Option<DynamicMessage>> {
        let name = descriptor.full_name().strip_prefix(PREFIX)?;
        if name == "Any" {
            return Some(self.any(node, descriptor));
        }
        if !WELL_KNOWN.contains(&name) {
            return None;
        }
        match DynamicMessage::deserialize(descriptor.clone(), json(node)) {
            Ok(message) => Some(Some(message)),
            Err(error) => {
                let why = if self.in_secret { String::new() } else { format!(": {error}") };
                self.complain(node, format!("this is no {PREFIX}{name}{why}"));
                Some(None)
            }
        }
    }

    fn any(&mut self, node: &Node, descriptor: &MessageDescriptor) -> Option<DynamicMessage> {
        let Content::Map(entries) = &node.content else {
            self.complain(node, format!("expected a map with an `@type`, found {}", node.what()));
            return None;
        };
        if entries.is_empty() {
            return Some(DynamicMessage::new(descriptor.clone()));
        }
        let Some(url) = node.get("@type").and_then(|entry| entry.value.as_text()) else {
            self.complain(node, "a packed message says what it is in `@type`, and this does not");
            return None;
        };
        let kind = url.rsplit('/').next().unwrap_or_default();
        let Some(inner) = self.schemas.message(kind) else {
            self.complain(node, format!("nobody has registered {kind}, so it cannot be packed"));
            return None;
        };
        let is_value = inner.full_name().strip_prefix(PREFIX);
        let message = if is_value.is_some_and(|name| name == "Any" || WELL_KNOWN.contains(&name)) {
            let Some(value) = node.get("value") else {
                self.complain(node, format!("a packed {kind} is in `value`, and there is none"));
                return None;
            };
            self.message(&value.value, &inner)?
        } else {
            let members: Vec<&Entry> = entries.iter().filter(|entry| entry.name != "@type").collect();
            self.members(node, &members, &inner)
        };
        let url = if url.contains('/') { url.to_owned() } else { format!("{TYPE_PREFIX}{url}") };
        let mut any = DynamicMessage::new(descriptor.clone());
        any.set_field_by_number(1, Value::String(url));
        any.set_field_by_number(2, Value::Bytes(canonical::encode(&message).into()));
        Some(any)
    }
}

/// The same as JSON. Numbers that JSON cannot have are text, as protobuf has them.
fn json(node: &Node) -> Json {
    match &node.content {
        Content::Null => Json::Null,
        Content::Bool(value) => Json::Bool(*value),
        Content::Number(text) => text.parse::<Number>().map_or_else(|_| plain_number(text), Json::Number),
        Content::Text(text) => Json::String(text.clone()),
        Content::List(items) => items.iter().map(|item| json(item)).collect(),
        Content::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|entry| (entry.name.clone(), json(&entry.value)))
                .collect::<Map<_, _>>(),
        ),
    }
}

/// YAML has numbers such as `007` and `.5`, which JSON has not.
fn plain_number(text: &str) -> Json {
    let value = text.parse::<f64>().ok().and_then(Number::from_f64);
    value.map_or_else(|| Json::String(text.to_owned()), Json::Number)
}
