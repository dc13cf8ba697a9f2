//! Whether bytes decode as a message, and where they do not.

use std::collections::HashSet;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Syntax};

use crate::schemas::wire::{MAX_DEPTH, Malformed, Raw, Record, Records};

/// The place in a message where decoding fails.
struct Fault {
    /// From the innermost field outwards.
    path: Vec<String>,
    at: usize,
    what: String,
}

/// Whether `bytes` decode as `message`. The error names the field, the byte and what was expected there.
pub(super) fn check(message: &MessageDescriptor, bytes: &[u8]) -> Result<(), String> {
    walk(message, bytes, 0, 0).map_err(|fault| {
        let Fault { mut path, at, what } = fault;
        path.reverse();
        let field = if path.is_empty() { String::new() } else { format!("field {} ", path.join(".")) };
        format!("not a {}: {field}at byte {at}: {what}", message.full_name())
    })
}

/// `base` is where `bytes` begin in the whole.
fn walk(message: &MessageDescriptor, bytes: &[u8], base: usize, depth: usize) -> Result<(), Fault> {
    if depth == MAX_DEPTH {
        return Err(Fault::new(base, "nested too deeply"));
    }
    // Only proto2 has required fields; what is not tracked costs nothing.
    let mut seen = (message.parent_file().syntax() == Syntax::Proto2).then(HashSet::new);
    for record in Records::new(bytes) {
        let record = record.map_err(|Malformed { at, what }| Fault::new(base + at, what))?;
        if let Some(seen) = &mut seen {
            seen.insert(record.number);
        }
        if let Some(field) = message.get_field(record.number) {
            value(&field, &record, base, depth).map_err(|fault| fault.inside(&field, bytes, &record))?;
        }
    }
    let missing = seen.and_then(|seen| message.fields().find(|f| f.is_required() && !seen.contains(&f.number())));
    match missing {
        Some(field) => {
            Err(Fault::new(base + bytes.len(), format!("required field {} of the message is missing", field.name())))
        }
        None => Ok(()),
    }
}

fn value(field: &FieldDescriptor, record: &Record<'_>, base: usize, depth: usize) -> Result<(), Fault> {
    let kind = field.kind();
    let content = base + record.content;
    match (record.value, &kind) {
        (Raw::Len(bytes), Kind::Message(inner)) if !field.is_group() => walk(inner, bytes, content, depth + 1),
        (Raw::Group(bytes), Kind::Message(inner)) if field.is_group() => walk(inner, bytes, content, depth + 1),
        (Raw::Len(bytes), Kind::String) => match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(Fault::new(content + error.valid_up_to(), "not UTF-8")),
        },
        (Raw::Len(_), Kind::Bytes) => Ok(()),
        (Raw::Len(bytes), _) if field.is_list() && is_packable(&kind) => packed(&kind, bytes, content),
        (raw, _) if fits(raw, &kind) => Ok(()),
        (raw, _) => Err(Fault::new(base + record.start, format!("expected {}, found {raw}", expected(field, &kind)))),
    }
}

/// A list of numbers without tags.
fn packed(kind: &Kind, bytes: &[u8], base: usize) -> Result<(), Fault> {
    let width = match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => 8,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => 4,
        _ => {
            let mut rest = bytes;
            while !rest.is_empty() {
                let at = base + bytes.len() - rest.len();
                prost::encoding::decode_varint(&mut rest).map_err(|_| Fault::new(at, "not a varint"))?;
            }
            return Ok(());
        }
    };
    match bytes.len() % width {
        0 => Ok(()),
        _ => Err(Fault::new(base, format!("{} bytes are not a list of {width}-byte values", bytes.len()))),
    }
}

fn is_packable(kind: &Kind) -> bool {
    !matches!(kind, Kind::Message(_) | Kind::String | Kind::Bytes)
}

fn fits(raw: Raw<'_>, kind: &Kind) -> bool {
    match kind {
        Kind::Message(_) | Kind::String | Kind::Bytes => false,
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => matches!(raw, Raw::Fixed64(_)),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => matches!(raw, Raw::Fixed32(_)),
        _ => matches!(raw, Raw::Varint(_)),
    }
}

fn expected(field: &FieldDescriptor, kind: &Kind) -> String {
    let wire = match kind {
        _ if field.is_group() => "a group",
        Kind::Message(_) | Kind::String | Kind::Bytes => "a length and bytes",
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => "a fixed 64-bit value",
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => "a fixed 32-bit value",
        _ => "a varint",
    };
    format!("{wire} ({kind:?})")
}

// === impl Fault ===

impl Fault {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self { path: Vec::new(), at, what: what.into() }
    }

    /// The same fault, seen from the message around it.
    fn inside(mut self, field: &FieldDescriptor, message: &[u8], record: &Record<'_>) -> Self {
        self.path.push(if field.is_list() || field.is_map() {
            // Counted only now, so that valid messages do not pay for it.
            let before = Records::new(&message[..record.start]).flatten().filter(|r| r.number == record.number);
            format!("{}[{}]", field.name(), before.count())
        } else {
            field.name().to_owned()
        });
        self
    }
}
