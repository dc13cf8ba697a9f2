//! Whether what was written with one version of a message can be read with the next.

use std::collections::HashSet;

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};

use crate::schemas::error::SchemaError;

/// Nobody reads longer paths, and in a long chain of messages they would take quadratic space.
const MAX_PATH: usize = 256;

/// How values look on the wire. Types of one class read each other's values, by protobuf's own rules for updating.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Varint,
    ZigZag,
    Fixed32,
    Fixed64,
    Float,
    Double,
    String,
    Bytes,
    Message,
    Group,
}

/// Checks kinds against their next versions. Messages that several kinds share are looked at once.
#[derive(Default)]
pub(super) struct Compat {
    seen: HashSet<(String, String)>,
}

// === impl Compat ===

impl Compat {
    /// Fails if a field of `was`, or of a message inside it, has an incompatible type in `now`, or became required.
    pub(super) fn check(&mut self, was: &MessageDescriptor, now: &MessageDescriptor) -> Result<(), SchemaError> {
        let kind = was.full_name();
        let mut todo = vec![(String::new(), was.clone(), now.clone())];
        // A list of things to do instead of recursion: the messages of a hostile schema may form a very long chain.
        while let Some((path, was, now)) = todo.pop() {
            if !self.seen.insert((was.full_name().to_owned(), now.full_name().to_owned())) {
                continue;
            }
            for new in now.fields() {
                let old = was.get_field(new.number());
                let compatible = match &old {
                    Some(old) => reads(&new, old) && (old.is_required() || !new.is_required()),
                    None => !new.is_required(),
                };
                let field = format!("{path}{}", old.as_ref().unwrap_or(&new).name());
                if !compatible {
                    let was = old.as_ref().map_or("absent".to_owned(), describe);
                    let (kind, number, now) = (kind.to_owned(), new.number(), describe(&new));
                    return Err(SchemaError::Incompatible { kind, field, number, was, now });
                }
                if let (Some(Kind::Message(was)), Kind::Message(now)) = (old.map(|old| old.kind()), new.kind()) {
                    let path = if field.len() < MAX_PATH { format!("{field}.") } else { format!("…{}.", was.name()) };
                    todo.push((path, was, now));
                }
            }
        }
        Ok(())
    }
}

/// Whether `new` reads what was written as `old`.
fn reads(new: &FieldDescriptor, old: &FieldDescriptor) -> bool {
    let (was, now) = (class(old), class(new));
    let same_class = was == now || (was == Class::String && now == Class::Bytes);
    let packable = !matches!(now, Class::String | Class::Bytes | Class::Message | Class::Group);
    let same_count = (old.cardinality() == Cardinality::Repeated) == (new.cardinality() == Cardinality::Repeated);
    // A single value reads the last of many, but not if they are packed.
    same_class && (same_count || !packable)
}

fn class(field: &FieldDescriptor) -> Class {
    match field.kind() {
        Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Bool | Kind::Enum(_) => Class::Varint,
        Kind::Sint32 | Kind::Sint64 => Class::ZigZag,
        Kind::Fixed32 | Kind::Sfixed32 => Class::Fixed32,
        Kind::Fixed64 | Kind::Sfixed64 => Class::Fixed64,
        Kind::Float => Class::Float,
        Kind::Double => Class::Double,
        Kind::String => Class::String,
        Kind::Bytes => Class::Bytes,
        Kind::Message(_) if field.is_group() => Class::Group,
        Kind::Message(_) => Class::Message,
    }
}

/// The type as in a proto file.
fn describe(field: &FieldDescriptor) -> String {
    let label = match field.cardinality() {
        Cardinality::Repeated => "repeated ",
        Cardinality::Required => "required ",
        Cardinality::Optional => "",
    };
    format!("{label}{:?}", field.kind())
}
