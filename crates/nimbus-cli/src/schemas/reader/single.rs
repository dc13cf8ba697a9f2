//! Single values: numbers, text, bytes, enums.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use nimbus_core::nearest;
use prost_reflect::{EnumDescriptor, Kind, MapKey, Value};

use crate::{
    document::{Content, Node},
    schemas::reader::Reader,
};

const PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PADDING);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, PADDING);

/// More digits than any number of protobuf needs, and few enough to be repeated in a message.
const MAX_DIGITS: usize = 400;

// === impl Reader ===

impl Reader<'_> {
    /// Reads one value of a field called `name`.
    pub(super) fn single(&mut self, name: &str, node: &Node, kind: &Kind) -> Option<Value> {
        match (kind, &node.content) {
            (Kind::Message(message), _) => return self.message(node, message).map(Value::Message),
            (Kind::Enum(choices), _) => return self.choice(name, node, choices),
            (Kind::Bool, Content::Bool(value)) => return Some(Value::Bool(*value)),
            (Kind::String, Content::Text(text)) => return Some(Value::String(text.clone())),
            (Kind::Bytes, Content::Text(text)) => {
                let bytes = decode_base64(text);
                if bytes.is_none() {
                    self.complain(node, format!("`{name}` is bytes, and this is no base64"));
                }
                return bytes.map(|bytes| Value::Bytes(bytes.into()));
            }
            (Kind::Bool | Kind::String | Kind::Bytes, _) => {}
            (_, Content::Number(text) | Content::Text(text)) => match number(text, kind) {
                Ok(value) => return Some(value),
                Err(Some(range)) => {
                    let message = format!(
                        "`{name}` is {}, and {} is out of its range ({range})",
                        type_name(kind),
                        self.quoted(text)
                    );
                    self.complain(node, message);
                    return None;
                }
                Err(None) => {}
            },
            _ => {}
        }
        let quote = match (kind, &node.content) {
            (Kind::String, Content::Number(_) | Content::Bool(_)) => " (hint: put it in quotes)",
            _ => "",
        };
        self.complain(node, format!("`{name}` is {}, found {}{quote}", type_name(kind), node.what()));
        None
    }

    fn choice(&mut self, name: &str, node: &Node, choices: &EnumDescriptor) -> Option<Value> {
        match &node.content {
            Content::Null if choices.full_name() == "google.protobuf.NullValue" => return Some(Value::EnumNumber(0)),
            Content::Number(text) => {
                if let Ok(number) = text.parse() {
                    return Some(Value::EnumNumber(number));
                }
                self.complain(node, format!("{} has no value {}", choices.full_name(), self.quoted(text)));
            }
            Content::Text(text) => {
                if let Some(value) = choices.get_value_by_name(text) {
                    return Some(Value::EnumNumber(value.number()));
                }
                let names: Vec<String> = choices.values().map(|value| value.name().to_owned()).collect();
                let near = nearest(text, names.iter().map(String::as_str)).filter(|_| !self.in_secret);
                let hint = match near {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None => format!(" (hint: it has {})", names.iter().take(8).cloned().collect::<Vec<_>>().join(", ")),
                };
                self.complain(node, format!("{} has no value {}{hint}", choices.full_name(), self.quoted(text)));
            }
            _ => self.complain(node, format!("`{name}` is a {}, found {}", choices.full_name(), node.what())),
        }
        None
    }
}

/// The name of a type, as in a proto file.
pub(super) fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::String => "text".to_owned(),
        kind => format!("{kind:?}").to_lowercase(),
    }
}

/// A key of a map, which is text in every file.
pub(super) fn key(text: &str, kind: &Kind) -> Option<MapKey> {
    match kind {
        Kind::String => Some(MapKey::String(text.to_owned())),
        Kind::Bool => text.parse().ok().map(MapKey::Bool),
        kind => match number(text, kind).ok()? {
            Value::I32(value) => Some(MapKey::I32(value)),
            Value::I64(value) => Some(MapKey::I64(value)),
            Value::U32(value) => Some(MapKey::U32(value)),
            Value::U64(value) => Some(MapKey::U64(value)),
            _ => None,
        },
    }
}

/// A number of that type. An error says what the range is, or nothing if it is no number at all.
fn number(text: &str, kind: &Kind) -> Result<Value, Option<String>> {
    if text.len() > MAX_DIGITS || text.is_empty() {
        return Err(None);
    }
    match kind {
        Kind::Double | Kind::Float => float(text, *kind == Kind::Float),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => ranged(text, i32::MIN, i32::MAX).map(Value::I32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => ranged(text, i64::MIN, i64::MAX).map(Value::I64),
        Kind::Uint32 | Kind::Fixed32 => ranged(text, u32::MIN, u32::MAX).map(Value::U32),
        Kind::Uint64 | Kind::Fixed64 => ranged(text, u64::MIN, u64::MAX).map(Value::U64),
        _ => Err(None),
    }
}

fn ranged<T>(text: &str, min: T, max: T) -> Result<T, Option<String>>
where
    T: TryFrom<i128> + std::fmt::Display + Copy,
{
    let whole = integer(text).ok_or(None)?;
    whole
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| Some(format!("{min} to {max}")))
}

/// An integer, also as `1e3` or `2.0`. Nothing if it is none, none within if it is too large for any type.
fn integer(text: &str) -> Option<Option<i128>> {
    if let Ok(value) = text.parse() {
        return Some(Some(value));
    }
    let value: f64 = text.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole, and small enough to be exact")]
    (value.is_finite() && value.fract() == 0.0)
        .then_some((value.abs() < 9_007_199_254_740_992.0).then_some(value as i128))
}

fn float(text: &str, single: bool) -> Result<Value, Option<String>> {
    let named = matches!(text, "Infinity" | "-Infinity" | "NaN");
    if !named && text.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E')) {
        return Err(None);
    }
    let value: f64 = text.parse().map_err(|_| None)?;
    let fits = named || (value.is_finite() && (!single || (value as f32).is_finite()));
    match (fits, single) {
        (false, true) => Err(Some(format!("{:e} to {:e}", f32::MIN, f32::MAX))),
        (false, false) => Err(Some(format!("{:e} to {:e}", f64::MIN, f64::MAX))),
        (true, true) => Ok(Value::F32(value as f32)),
        (true, false) => Ok(Value::F64(value)),
    }
}

/// Base64 in both alphabets, with or without padding.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}
