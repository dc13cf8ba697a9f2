//! From what people write to messages: the JSON form of protobuf, with a place for everything that is wrong.

mod single;
#[cfg(test)]
mod tests;
mod well_known;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nimbus_core::nearest;
use prost_reflect::{DynamicMessage, Kind, MapKey, MessageDescriptor, Value};

pub(crate) use crate::schemas::reader::{single::decode_base64, well_known::TYPE_PREFIX};
use crate::{
    document::{Complaint, Content, Entry, Node},
    schemas::{
        Schemas,
        fields::Field,
        secrets::{Kept, SECRET},
    },
};

/// Reads messages, and collects what is wrong with them.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    schemas: &'a Schemas,
    /// What placeholders stand for; if there is nothing, they are refused.
    kept: Option<&'a Kept>,
    /// What is being read is secret, and must not get into a complaint.
    in_secret: bool,
    pub(crate) complaints: Vec<Complaint>,
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(crate) fn new(schemas: &'a Schemas, kept: Option<&'a Kept>) -> Self {
        Self { schemas, kept, in_secret: false, complaints: Vec::new() }
    }

    /// Says that something is wrong with `node`.
    pub(crate) fn complain(&mut self, node: &Node, message: impl Into<String>) {
        self.complaints.push(Complaint::new(node.at, message));
    }

    /// What a placeholder for the secret called `of` stands for, or why there is none.
    pub(crate) fn placeholder(&mut self, node: &Node, of: &str) -> Option<Option<Value>> {
        let text = node.as_text()?;
        match self.kept {
            Some(kept) if kept.is_placeholder(text) => {
                let value = kept.value(text, of).cloned();
                if value.is_none() {
                    self.complain(node, format!("`{text}` stands for no {of} of this object"));
                }
                Some(value)
            }
            None if text == SECRET => {
                self.complain(
                    node,
                    format!("`{SECRET}` says that a secret was there, and not which (hint: write the secret, or use `nimbus edit`)"),
                );
                Some(None)
            }
            _ => None,
        }
    }

    /// Reads a message. There may be complaints even if there is one.
    pub(crate) fn message(&mut self, node: &Node, descriptor: &MessageDescriptor) -> Option<DynamicMessage> {
        if let Some(message) = self.well_known(node, descriptor) {
            return message;
        }
        let Content::Map(entries) = &node.content else {
            self.complain(node, format!("expected a {} as a map, found {}", descriptor.full_name(), node.what()));
            return None;
        };
        let members: Vec<&Entry> = entries.iter().collect();
        Some(self.members(node, &members, descriptor))
    }

    fn members(&mut self, node: &Node, entries: &[&Entry], descriptor: &MessageDescriptor) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        let mut given: BTreeMap<u32, &str> = BTreeMap::new();
        let mut nothing: BTreeSet<u32> = BTreeSet::new();
        let mut chosen: HashMap<String, &str> = HashMap::new();
        for entry in entries {
            let Some(field) = self.field(entry, descriptor) else { continue };
            if let Some(before) = given.insert(field.number(), &entry.name) {
                let message = format!("`{}` and `{before}` are the same field", entry.name);
                self.complaints.push(Complaint::new(entry.at, message));
                continue;
            }
            if matches!(entry.value.content, Content::Null) && !takes_null(&field.kind()) {
                nothing.insert(field.number());
                continue;
            }
            if let Some(before) = field.oneof().and_then(|oneof| chosen.insert(oneof, &entry.name)) {
                let message = format!("`{}` and `{before}` exclude each other", entry.name);
                self.complaints.push(Complaint::new(entry.at, message));
                continue;
            }
            if let Some(value) = self.value(entry, &field) {
                match field {
                    Field::Own(field) => message.set_field(&field, value),
                    Field::Extension(extension) => message.set_extension(&extension, value),
                }
            }
        }
        let missing = descriptor
            .fields()
            .filter(prost_reflect::FieldDescriptor::is_required)
            .filter(|field| !given.contains_key(&field.number()) || nothing.contains(&field.number()));
        for field in missing {
            self.complain(node, format!("{} needs `{}`", descriptor.full_name(), field.json_name()));
        }
        message
    }

    /// The field that an entry names.
    fn field(&mut self, entry: &Entry, descriptor: &MessageDescriptor) -> Option<Field> {
        let name = &*entry.name;
        let field = Field::find(descriptor, name);
        if field.is_none() {
            let names: Vec<String> = descriptor.fields().map(|field| field.json_name().to_owned()).collect();
            let near = nearest(name, names.iter().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let message = format!("{} has no field `{name}`{hint}", descriptor.full_name());
            self.complaints.push(Complaint::new(entry.at, message));
        }
        field
    }

    /// A value as a complaint may name it.
    fn quoted(&self, text: &str) -> String {
        if self.in_secret { "this".to_owned() } else { format!("`{text}`") }
    }

    fn value(&mut self, entry: &Entry, field: &Field) -> Option<Value> {
        if !field.is_secret() {
            return self.open_value(entry, field);
        }
        if let Some(value) = self.placeholder(&entry.value, field.full_name()) {
            return value;
        }
        let around = std::mem::replace(&mut self.in_secret, true);
        let value = self.open_value(entry, field);
        self.in_secret = around;
        value
    }

    fn open_value(&mut self, entry: &Entry, field: &Field) -> Option<Value> {
        let node = &*entry.value;
        let kind = field.kind();
        if field.is_map() {
            return self.map(entry, &kind);
        }
        if !field.is_list() {
            return self.single(&entry.name, node, &kind);
        }
        let Content::List(items) = &node.content else {
            self.complain(node, format!("`{}` is a list, found {}", entry.name, node.what()));
            return None;
        };
        let values: Vec<Option<Value>> = items.iter().map(|item| self.single(&entry.name, item, &kind)).collect();
        values.into_iter().collect::<Option<Vec<Value>>>().map(Value::List)
    }

    fn map(&mut self, entry: &Entry, kind: &Kind) -> Option<Value> {
        let node = &*entry.value;
        let (Kind::Message(message), Content::Map(entries)) = (kind, &node.content) else {
            self.complain(node, format!("`{}` is a map, found {}", entry.name, node.what()));
            return None;
        };
        let (key_kind, value_kind) = (message.map_entry_key_field().kind(), message.map_entry_value_field().kind());
        let mut values: HashMap<MapKey, Value> = HashMap::new();
        for inner in entries {
            let Some(key) = single::key(&inner.name, &key_kind) else {
                let message =
                    format!("`{}` is no {} (a key of `{}`)", inner.name, single::type_name(&key_kind), entry.name);
                self.complaints.push(Complaint::new(inner.at, message));
                continue;
            };
            if let Some(value) = self.single(&inner.name, &inner.value, &value_kind)
                && values.insert(key, value).is_some()
            {
                self.complaints.push(Complaint::new(inner.at, format!("`{}` is there twice", inner.name)));
            }
        }
        Some(Value::Map(values))
    }
}

/// Null is a value of these; of all others, it is none.
fn takes_null(kind: &Kind) -> bool {
    match kind {
        Kind::Message(message) => message.full_name() == "google.protobuf.Value",
        Kind::Enum(choices) => choices.full_name() == "google.protobuf.NullValue",
        _ => false,
    }
}
