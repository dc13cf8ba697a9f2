//! What an object has of its own, in one piece of memory.

use std::{borrow::Cow, str};

use bytes::BufMut as _;
use nimbus_core::Uid;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

use crate::record::{
    Decision,
    encode::{
        ANY_VALUE, NAME, NAMESPACE, SPEC, STATUS, UID, field_len, put_field, put_head, put_header, put_middle,
        with_buffer,
    },
    family::Family,
};

/// What an object has of its own, in one piece of memory:
///
/// ```text
/// length of the namespace · length of the name · namespace · name
/// length of the uid · uid; or HEX · the number that its digits say
/// length of the head · length of the middle · twice the length of the status, and one more if the spec is only a message
/// head: the encoded fields from the generation to the owner
/// middle: the encoded fields from the observed generation to the mark of a delete
/// status: an encoded `Any`
/// spec: an encoded `Any`, or, if its type is that of the kind, only the message in it
/// ```
///
/// The rest of the encoded object is in its [`Family`], or known to the record.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
}

/// Where the parts lie that an object is encoded from.
pub(crate) struct Parts<'a> {
    namespace: &'a [u8],
    name: &'a [u8],
    uid: Text<'a>,
    pub(crate) head: &'a [u8],
    pub(crate) middle: &'a [u8],
    pub(crate) status: &'a [u8],
    /// The type of the spec is that of the kind, and not here.
    typed: bool,
    spec: &'a [u8],
}

/// A uid, as it is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text<'a> {
    Plain(&'a [u8]),
    /// 32 lower-case hexadecimal digits.
    Hex(&'a [u8]),
}

/// Stands for the length of a uid of 32 hexadecimal digits, as a bus makes them up. No name is as long.
const HEX: u8 = u8::MAX;

/// Bytes that such a uid takes.
const HEX_LEN: usize = 16;

// === impl Packed ===

impl Packed {
    pub(crate) fn new(content: &Decision<'_>, family: &Family) -> Self {
        let Decision { key, uid, spec, status, .. } = *content;
        let (namespace, name) = (key.namespace().as_bytes(), key.name().as_bytes());
        let (message, typed) = match message(spec, &family.type_field) {
            Some(message) => (message, true),
            None => (spec, false),
        };
        let number = number(uid.as_str().as_bytes());
        let uid = number.as_ref().map_or(uid.as_str().as_bytes(), |number| &number[..]);
        with_buffer(|fields| {
            let Decision { generation, labels, refs, owner, .. } = *content;
            put_head(fields, generation, labels, refs, owner);
            let head = fields.len();
            put_middle(fields, content);
            let middle = fields.len() - head;
            let lengths = [head as u64, middle as u64, (status.len() as u64) << 1 | u64::from(typed)];
            let names = 3 + namespace.len() + name.len() + uid.len();
            let numbers: usize = lengths.iter().map(|len| encoded_len_varint(*len)).sum();
            let size = names + numbers + fields.len() + status.len() + message.len();
            // Exactly its size: an object may live for years.
            let mut bytes = Vec::with_capacity(size);
            bytes.put_u8(len_of(namespace));
            bytes.put_u8(len_of(name));
            bytes.put_slice(namespace);
            bytes.put_slice(name);
            bytes.put_u8(if number.is_some() { HEX } else { len_of(uid) });
            bytes.put_slice(uid);
            lengths.iter().for_each(|len| encode_varint(*len, &mut bytes));
            bytes.put_slice(fields);
            bytes.put_slice(status);
            bytes.put_slice(message);
            debug_assert_eq!(bytes.len(), size);
            Self { bytes: bytes.into() }
        })
    }

    /// The namespace and the name, to be compared: the order of bytes is that of text.
    pub(crate) fn names(&self) -> (&[u8], &[u8]) {
        let (namespace, name) = (usize::from(self.bytes[0]), usize::from(self.bytes[1]));
        self.bytes[2..2 + namespace + name].split_at(namespace)
    }

    pub(crate) fn uid(&self) -> Uid {
        let uid = match self.parts().uid {
            Text::Plain(text) => Uid::new(text_of(text)),
            Text::Hex(number) => Uid::new(text_of(&digits(number))),
        };
        uid.expect("it was one before")
    }

    pub(crate) fn has_uid(&self, uid: &Uid) -> bool {
        let text = uid.as_str().as_bytes();
        match self.parts().uid {
            Text::Plain(mine) => mine == text,
            Text::Hex(mine) => digits(mine) == text,
        }
    }

    pub(crate) fn has_uid_of(&self, other: &Self) -> bool {
        self.parts().uid == other.parts().uid
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        let (namespace, name) = self.names();
        let rest = &self.bytes[2 + namespace.len() + name.len()..];
        let (uid, rest) = match rest[0] {
            HEX => (Text::Hex(&rest[1..=HEX_LEN]), &rest[1 + HEX_LEN..]),
            len => (Text::Plain(&rest[1..=usize::from(len)]), &rest[1 + usize::from(len)..]),
        };
        let mut rest = rest;
        let mut len = || decode_varint(&mut rest).expect("the store encoded it") as usize;
        let (head, middle, status) = (len(), len(), len());
        let typed = status & 1 == 1;
        let (head, rest) = rest.split_at(head);
        let (middle, rest) = rest.split_at(middle);
        let (status, spec) = rest.split_at(status >> 1);
        Parts { namespace, name, uid, head, middle, status, typed, spec }
    }

    /// The message in the spec, if its type is that of the kind.
    pub(crate) fn message(&self) -> Option<&[u8]> {
        let Parts { typed, spec, .. } = self.parts();
        typed.then_some(spec)
    }

    /// The spec as an encoded `Any`; empty if there is none.
    pub(crate) fn spec(&self, family: &Family) -> Cow<'_, [u8]> {
        let parts = self.parts();
        if !parts.typed {
            return Cow::Borrowed(parts.spec);
        }
        let mut spec = Vec::with_capacity(parts.spec_len(family));
        parts.put_spec(family, &mut spec);
        Cow::Owned(spec)
    }

    /// Whether this is the spec, as an encoded `Any`.
    pub(crate) fn has_spec(&self, family: &Family, spec: &[u8]) -> bool {
        let parts = self.parts();
        if parts.typed { message(spec, &family.type_field) == Some(parts.spec) } else { parts.spec == spec }
    }

    /// Appends the encoded object, but for its revision and its audience.
    pub(crate) fn put(&self, family: &Family, buffer: &mut Vec<u8>) {
        let parts = self.parts();
        let Parts { namespace, name, uid, head, middle, status, .. } = parts;
        buffer.put_slice(&family.kind_field);
        put_field(buffer, NAMESPACE, namespace);
        put_field(buffer, NAME, name);
        match uid {
            Text::Plain(text) => put_field(buffer, UID, text),
            Text::Hex(number) => put_field(buffer, UID, &digits(number)),
        }
        buffer.put_slice(head);
        buffer.put_slice(&family.manager_field);
        buffer.put_slice(middle);
        if parts.has_spec() {
            put_header(buffer, SPEC, parts.spec_len(family));
            parts.put_spec(family, buffer);
        }
        put_field(buffer, STATUS, status);
    }

    /// How many bytes that appends.
    pub(crate) fn len(&self, family: &Family) -> usize {
        let parts = self.parts();
        let Parts { namespace, name, uid, head, middle, status, .. } = parts;
        let field = |field, len| if len == 0 { 0 } else { field_len(field, len) };
        let uid = match uid {
            Text::Plain(text) => text.len(),
            Text::Hex(number) => 2 * number.len(),
        };
        let spec = if parts.has_spec() { field_len(SPEC, parts.spec_len(family)) } else { 0 };
        let names = field(NAMESPACE, namespace.len()) + field(NAME, name.len()) + field(UID, uid);
        let shared = family.kind_field.len() + family.manager_field.len();
        shared + names + head.len() + middle.len() + spec + field(STATUS, status.len())
    }
}

// === impl Parts ===

impl Parts<'_> {
    fn has_spec(&self) -> bool {
        self.typed || !self.spec.is_empty()
    }

    fn spec_len(&self, family: &Family) -> usize {
        match (self.typed, self.spec.len()) {
            (false, len) => len,
            // As everywhere, what is empty is not there.
            (true, 0) => family.type_field.len(),
            (true, len) => family.type_field.len() + field_len(ANY_VALUE, len),
        }
    }

    fn put_spec(&self, family: &Family, buffer: &mut Vec<u8>) {
        if self.typed {
            buffer.put_slice(&family.type_field);
            put_field(buffer, ANY_VALUE, self.spec);
        } else {
            buffer.put_slice(self.spec);
        }
    }
}

fn len_of(name: &[u8]) -> u8 {
    u8::try_from(name.len()).expect("names are limited")
}

fn text_of(name: &[u8]) -> &str {
    str::from_utf8(name).expect("names are ASCII")
}

/// The message in an encoded `Any` that has this type, if it is encoded as everybody does it: then the bytes can be made
/// again from both.
fn message<'a>(spec: &'a [u8], type_field: &[u8]) -> Option<&'a [u8]> {
    let rest = spec.strip_prefix(type_field)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let mut message = rest.strip_prefix(&[(ANY_VALUE << 3) as u8 | 2])?;
    let len = decode_varint(&mut message).ok()?;
    // Also a length can be written in more than one way.
    let whole = len > 0 && len == message.len() as u64 && rest.len() == field_len(ANY_VALUE, message.len());
    whole.then_some(message)
}

/// The number that 32 lower-case hexadecimal digits say, if these are some.
fn number(digits: &[u8]) -> Option<[u8; HEX_LEN]> {
    let digits: &[u8; 2 * HEX_LEN] = digits.try_into().ok()?;
    // All are looked at, whatever the first ones are: then a processor can look at many at once.
    let is_digit = |digit: u8| (digit.wrapping_sub(b'0') < 10) | (digit.wrapping_sub(b'a') < 6);
    if !digits.iter().fold(true, |all, digit| all & is_digit(*digit)) {
        return None;
    }
    let values = digits.map(|digit| if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 });
    let mut number = [0; HEX_LEN];
    for (byte, pair) in number.iter_mut().zip(values.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(number)
}

/// The digits that say a number.
fn digits(number: &[u8]) -> [u8; 2 * HEX_LEN] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 2 * HEX_LEN];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}
