//! Reads one field of an encoded message, without decoding the rest.

use nimbus_core::nearest;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::schemas::wire::{Raw, Records};

/// How far a scan has come. What comes later on the wire overrides what came before, as when messages are merged.
struct Scan<'a> {
    steps: &'a [FieldDescriptor],
    /// The messages around the value that are set, from the outside.
    entered: usize,
    value: Option<Raw<'a>>,
}

/// The fields along `path`: messages, and at the end a number, a bool, a string or an enum.
///
/// # Errors
///
/// Says which part is wrong and why, with the nearest name if it is unknown.
pub(super) fn resolve(message: &MessageDescriptor, path: &[&str]) -> Result<Vec<FieldDescriptor>, String> {
    let mut around = message.clone();
    let mut steps = Vec::with_capacity(path.len());
    for (i, part) in path.iter().enumerate() {
        let field = around.get_field_by_name(part).or_else(|| around.get_field_by_json_name(part));
        let field = field.ok_or_else(|| unknown(&around, part))?;
        if field.is_list() || field.is_map() {
            return Err(format!("field {} is repeated, only single values can be compared", field.full_name()));
        }
        match (field.kind(), i + 1 == path.len()) {
            (Kind::Message(inner), false) => around = inner,
            (Kind::Message(inner), true) => {
                return Err(format!("field {} is a message, name a field of {}", field.full_name(), inner.full_name()));
            }
            (Kind::Bytes, true) => return Err(format!("field {} is bytes, which have no text", field.full_name())),
            (_, true) => {}
            (kind, false) => return Err(format!("field {} is a {kind:?} and has no fields", field.full_name())),
        }
        steps.push(field);
    }
    if steps.is_empty() { Err("the path names no field".to_owned()) } else { Ok(steps) }
}

/// Number of `FieldOptions.debug_redact`, with which schemas mark secrets.
const DEBUG_REDACT: u32 = 16;

/// Refuses secrets: who may ask whether a field has some value finds it out, and answers about filters name what they
/// found.
///
/// # Errors
///
/// Says which field is one.
pub(super) fn check_secrets(steps: &[FieldDescriptor]) -> Result<(), String> {
    match steps.iter().find(|field| is_secret(field)) {
        Some(field) => Err(format!("field {} is secret (debug_redact) and cannot be compared", field.full_name())),
        None => Ok(()),
    }
}

/// Whether a schema marks it as secret.
pub(super) fn is_secret(field: &FieldDescriptor) -> bool {
    let option = field.options().get_field_by_number(DEBUG_REDACT).map(|value| value.as_bool());
    option == Some(Some(true))
}

/// The value at the end of resolved `steps`, as text.
pub(super) fn read(steps: &[FieldDescriptor], bytes: &[u8]) -> Option<String> {
    let last = steps.last()?;
    let mut scan = Scan { steps, entered: 0, value: None };
    scan.message(bytes, 0)?;
    match scan.value {
        Some(value) => text(&last.kind(), value),
        None if scan.entered + 1 == steps.len() && !last.supports_presence() => text(&last.kind(), zero(&last.kind())),
        None => None,
    }
}

fn unknown(message: &MessageDescriptor, part: &str) -> String {
    let names: Vec<_> = message.fields().map(|field| field.name().to_owned()).collect();
    let hint = nearest(part, names.iter().map(String::as_str));
    let hint = hint.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
    format!("{} has no field {part}{hint}", message.full_name())
}

fn zero(kind: &Kind) -> Raw<'static> {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Raw::Fixed64(0),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Raw::Fixed32(0),
        Kind::String | Kind::Bytes | Kind::Message(_) => Raw::Len(&[]),
        _ => Raw::Varint(0),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "how protobuf defines narrow integers")]
fn text(kind: &Kind, value: Raw<'_>) -> Option<String> {
    Some(match (kind, value) {
        (Kind::Bool, Raw::Varint(v)) => (v != 0).to_string(),
        (Kind::Int32, Raw::Varint(v)) => (v as i32).to_string(),
        (Kind::Int64, Raw::Varint(v)) => (v as i64).to_string(),
        (Kind::Uint32, Raw::Varint(v)) => (v as u32).to_string(),
        (Kind::Uint64, Raw::Varint(v)) => v.to_string(),
        (Kind::Sint32, Raw::Varint(v)) => (zigzag(u64::from(v as u32)) as i32).to_string(),
        (Kind::Sint64, Raw::Varint(v)) => zigzag(v).to_string(),
        (Kind::Fixed32, Raw::Fixed32(v)) => v.to_string(),
        (Kind::Sfixed32, Raw::Fixed32(v)) => (v as i32).to_string(),
        (Kind::Fixed64, Raw::Fixed64(v)) => v.to_string(),
        (Kind::Sfixed64, Raw::Fixed64(v)) => (v as i64).to_string(),
        (Kind::Float, Raw::Fixed32(v)) => float(&f32::from_bits(v), f32::from_bits(v).is_infinite()),
        (Kind::Double, Raw::Fixed64(v)) => float(&f64::from_bits(v), f64::from_bits(v).is_infinite()),
        (Kind::String, Raw::Len(v)) => std::str::from_utf8(v).ok()?.to_owned(),
        (Kind::Enum(names), Raw::Varint(v)) => match names.get_value(v as i32) {
            Some(value) => value.name().to_owned(),
            None => (v as i32).to_string(),
        },
        _ => return None,
    })
}

/// As in JSON, where it is `Infinity`.
fn float(value: &impl ToString, infinite: bool) -> String {
    let text = value.to_string();
    if infinite { text.replace("inf", "Infinity") } else { text }
}

#[allow(clippy::cast_possible_wrap, reason = "the halves are below 2^63")]
fn zigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

// === impl Scan ===

impl<'a> Scan<'a> {
    /// Scans one occurrence of the message in which step `depth` is a field. None if it is malformed.
    fn message(&mut self, bytes: &'a [u8], depth: usize) -> Option<()> {
        let step = &self.steps[depth];
        let oneof = step.containing_oneof();
        for record in Records::new(bytes) {
            let record = record.ok()?;
            if record.number == step.number() {
                match record.value {
                    value if depth + 1 == self.steps.len() => self.value = Some(value),
                    Raw::Len(inner) | Raw::Group(inner) => {
                        self.entered = self.entered.max(depth + 1);
                        self.message(inner, depth + 1)?;
                    }
                    _ => return None,
                }
            } else if oneof.as_ref().is_some_and(|oneof| oneof.fields().any(|f| f.number() == record.number)) {
                self.entered = self.entered.min(depth);
                self.value = None;
            }
        }
        Some(())
    }
}
