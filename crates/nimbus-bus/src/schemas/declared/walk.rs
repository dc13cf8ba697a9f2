//! Along the ways to names, through encoded messages.
//!
//! Nothing else is decoded, and nothing copied. What is found is what a decoder would find, whatever an encoder may do:
//! values that are written twice, messages in pieces, entries of maps that replace each other.

use std::{collections::BTreeMap, fmt};

use nimbus_core::Invalid;
use nimbus_store::Reason;

use crate::schemas::{
    declared::{Count, Flaw, Keys, Message, Step, To, rule::Rule},
    wire::{MAX_DEPTH, Malformed, Raw, Record, Records},
};

/// Where the walk is, from the inside out.
#[derive(Clone, Copy)]
struct Place<'a> {
    around: Option<&'a Place<'a>>,
    field: &'a str,
    at: At<'a>,
    depth: usize,
}

/// Which of the values of a field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At<'a> {
    Only,
    Index(usize),
    Number(u64),
    Key(&'a [u8]),
}

/// One message, as it lies on the wire: its pieces are one after another, wherever they are.
type Pieces<'a> = Vec<&'a [u8]>;

/// Calls with every name in a message, and what it names.
///
/// # Errors
/// If it is no message, or what `named` says, with the field.
pub(super) fn walk(
    messages: &[Message],
    start: usize,
    bytes: &[u8],
    named: &mut impl FnMut(&Rule, &str) -> Result<(), Reason>,
) -> Result<(), Flaw> {
    message(messages, start, &[bytes], None, named)
}

fn message(
    messages: &[Message],
    which: usize,
    pieces: &[&[u8]],
    around: Option<&Place<'_>>,
    named: &mut impl FnMut(&Rule, &str) -> Result<(), Reason>,
) -> Result<(), Flaw> {
    let depth = around.map_or(0, |place| place.depth + 1);
    if depth == MAX_DEPTH {
        return Err(flaw(around, malformed()));
    }
    for (step, found) in values(&messages[which], pieces).map_err(|_| flaw(around, malformed()))?.into_values() {
        let mut each = |at, pieces: &[&[u8]]| {
            let place = Place { around, field: &step.name, at, depth };
            match (&step.to, pieces.last()) {
                (To::Message(inner), _) => message(messages, *inner, pieces, Some(&place), named),
                // A field without a value names nothing. In a list, or a map, somebody has put it there.
                (To::Names(_), Some([]) | None) if at == At::Only => Ok(()),
                (To::Names(rule), last) => {
                    let text = std::str::from_utf8(last.copied().unwrap_or_default()).map_err(|_| malformed());
                    text.and_then(|text| named(rule, text)).map_err(|reason| flaw(Some(&place), reason))
                }
            }
        };
        match step.count {
            Count::One => each(At::Only, &found)?,
            Count::List => found.iter().enumerate().try_for_each(|(at, value)| each(At::Index(at), &[value]))?,
            Count::Map(keys) => {
                let entries = entries(keys, &found).map_err(|_| flaw(around, malformed()))?;
                entries.into_iter().try_for_each(|(key, value)| each(key, &value))?;
            }
        }
    }
    Ok(())
}

/// What the fields that lead somewhere have on the wire, as far as it counts.
fn values<'a, 'm>(
    message: &'m Message,
    pieces: &[&'a [u8]],
) -> Result<BTreeMap<u32, (&'m Step, Pieces<'a>)>, Malformed> {
    let mut found: BTreeMap<u32, (&Step, Pieces<'_>)> = BTreeMap::new();
    // Of each oneof, the field that was set last.
    let mut set: BTreeMap<usize, u32> = BTreeMap::new();
    for record in pieces.iter().flat_map(|piece| Records::new(piece)) {
        let record = record?;
        let Some(part) = message.parts.get(&record.number) else { continue };
        if let Some(before) = part.oneof.and_then(|oneof| set.insert(oneof, record.number))
            && before != record.number
        {
            found.remove(&before);
        }
        if let (Some(step), Some(bytes)) = (&part.step, content(&record)) {
            found.entry(record.number).or_insert_with(|| (step, Vec::new())).1.push(bytes);
        }
    }
    Ok(found)
}

/// The entries of a map: of those with the same key, the last one.
fn entries<'a>(keys: Keys, found: &[&'a [u8]]) -> Result<BTreeMap<At<'a>, Pieces<'a>>, Malformed> {
    /// Numbers of the fields of an entry.
    const KEY: u32 = 1;
    const VALUE: u32 = 2;

    let mut entries = BTreeMap::new();
    for entry in found {
        let mut at = if keys == Keys::Text { At::Key(&[]) } else { At::Number(0) };
        let mut value = Vec::new();
        for record in Records::new(entry) {
            let record = record?;
            match record.number {
                KEY => at = key(keys, &record).unwrap_or(at),
                VALUE => value.extend(content(&record)),
                _ => {}
            }
        }
        entries.insert(at, value);
    }
    Ok(entries)
}

#[allow(clippy::cast_possible_truncation, reason = "how protobuf defines narrow integers")]
fn key<'a>(keys: Keys, record: &Record<'a>) -> Option<At<'a>> {
    let number = match record.value {
        Raw::Len(bytes) => return Some(At::Key(bytes)),
        Raw::Varint(number) | Raw::Fixed64(number) => number,
        Raw::Fixed32(number) => u64::from(number),
        Raw::Group(_) => return None,
    };
    Some(At::Number(match keys {
        Keys::Bool => u64::from(number != 0),
        Keys::Bits32 => u64::from(number as u32),
        _ => number,
    }))
}

fn content<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    match record.value {
        Raw::Len(bytes) | Raw::Group(bytes) => Some(bytes),
        _ => None,
    }
}

fn malformed() -> Reason {
    Reason::Invalid(Invalid { what: "message", value: String::new(), expected: "well-formed bytes" })
}

fn flaw(place: Option<&Place<'_>>, reason: Reason) -> Flaw {
    Flaw { field: place.map(ToString::to_string).unwrap_or_default(), reason }
}

// === impl Place ===

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(around) = self.around {
            write!(f, "{around}.")?;
        }
        f.write_str(self.field)?;
        match self.at {
            At::Only => Ok(()),
            At::Index(at) => write!(f, "[{at}]"),
            At::Number(key) => write!(f, "[{key}]"),
            At::Key(key) => write!(f, "[{:?}]", String::from_utf8_lossy(key)),
        }
    }
}
