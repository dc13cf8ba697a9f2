//! Objects as bytes: what the generated code would write, without a message in between.

use std::{cell::RefCell, mem};

use bytes::Bytes;
use nimbus_core::{Reference, Revision};
use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};

use crate::record::Content;

/// An object as bytes, and where its parts lie.
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) audience_field: Box<[u8]>,
    pub(crate) owner: Span,
    pub(crate) spec: Span,
    pub(crate) status: Span,
}

/// Where a field lies; nowhere if its end is zero.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

thread_local! {
    /// Where objects are put together: what is kept of them has exactly their size.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that has grown beyond this is not kept.
const KEPT: usize = 64 << 10;

const KIND: u32 = 1;
const NAMESPACE: u32 = 2;
const NAME: u32 = 3;
const UID: u32 = 4;
const GENERATION: u32 = 5;
const REVISION: u32 = 6;
const LABELS: u32 = 7;
const REFS: u32 = 8;
const OWNER: u32 = 9;
const MANAGER: u32 = 10;
const SPEC: u32 = 11;
const STATUS: u32 = 12;
const OBSERVED_GENERATION: u32 = 13;
const AUDIENCE: u32 = 14;
const ANNOTATIONS: u32 = 15;
const FINALIZERS: u32 = 16;
const DELETING: u32 = 17;

// === impl Encoded ===

impl Encoded {
    /// Encodes an object: what is the same after a restart of the bus, then the revision; and its audience apart.
    pub(crate) fn new(content: &Content, revision: Revision) -> Self {
        let mut buffer = BUFFER.take();
        buffer.clear();
        let owner = put_header(&mut buffer, content);
        let spec = put_field(&mut buffer, SPEC, &content.spec);
        let status = put_field(&mut buffer, STATUS, &content.status);
        encode_key(REVISION, WireType::Varint, &mut buffer);
        encode_varint(revision.0, &mut buffer);
        // Exactly its size: an object may live for years.
        let body = Bytes::from(Box::<[u8]>::from(buffer.as_slice()));
        buffer.clear();
        if let Some(audience) = content.audience.to_wire() {
            encode_key(AUDIENCE, WireType::LengthDelimited, &mut buffer);
            audience.encode_length_delimited(&mut buffer).expect("a growing buffer has room");
        }
        let audience_field = Box::from(buffer.as_slice());
        if buffer.capacity() <= KEPT {
            BUFFER.replace(mem::take(&mut buffer));
        }
        Self { body, audience_field, owner, spec, status }
    }
}

// === impl Span ===

impl Span {
    fn ending(buffer: &[u8], len: usize) -> Self {
        let end = u32::try_from(buffer.len()).expect("object size is limited");
        Self { start: end - u32::try_from(len).expect("object size is limited"), end }
    }

    /// The field, if it is there.
    pub(crate) fn of(self, body: &[u8]) -> Option<&[u8]> {
        (self.end > 0).then(|| &body[self.start as usize..self.end as usize])
    }

    /// The same, shared; empty if it is not there.
    pub(crate) fn slice(self, body: &Bytes) -> Bytes {
        if self.end == 0 { Bytes::new() } else { body.slice(self.start as usize..self.end as usize) }
    }
}

/// Says where the owner lies.
fn put_header(buffer: &mut Vec<u8>, content: &Content) -> Span {
    put_text(buffer, KIND, content.key.kind().as_str());
    put_text(buffer, NAMESPACE, content.key.namespace());
    put_text(buffer, NAME, content.key.name());
    put_text(buffer, UID, content.uid.as_str());
    put_number(buffer, GENERATION, content.generation.0);
    for (key, value) in content.labels.iter() {
        put_texts(buffer, LABELS, &[key, value], false);
    }
    for Reference { to, weak } in &*content.refs {
        put_texts(buffer, REFS, &[to.kind().as_str(), to.namespace(), to.name()], *weak);
    }
    let owner = content.owner.as_ref();
    let owner = owner.map_or_else(Span::default, |owner| put_texts(buffer, OWNER, &owner.texts(), false));
    put_text(buffer, MANAGER, content.manager.as_str());
    put_number(buffer, OBSERVED_GENERATION, content.observed.0);
    for (key, value) in content.annotations.iter() {
        put_texts(buffer, ANNOTATIONS, &[key, value], false);
    }
    for name in content.finalizers.iter() {
        // In a list, also what is empty is there.
        put_len(buffer, FINALIZERS, name.len());
        buffer.extend_from_slice(name.as_bytes());
    }
    put_number(buffer, DELETING, content.deleting.into());
    owner
}

/// A message whose first fields are text, and perhaps a flag after them.
fn put_texts(buffer: &mut Vec<u8>, field: u32, texts: &[&str], flag: bool) -> Span {
    let numbered = || (1..).zip(texts);
    let after = texts.len() as u32 + 1;
    let len: usize = numbered().map(|(field, text)| text_len(field, text)).sum();
    let len = len + if flag { key_len(after) + 1 } else { 0 };
    put_len(buffer, field, len);
    numbered().for_each(|(field, text)| put_text(buffer, field, text));
    put_number(buffer, after, flag.into());
    Span::ending(buffer, len)
}

fn text_len(field: u32, text: &str) -> usize {
    if text.is_empty() { 0 } else { key_len(field) + encoded_len_varint(text.len() as u64) + text.len() }
}

fn put_text(buffer: &mut Vec<u8>, field: u32, text: &str) {
    put_field(buffer, field, text.as_bytes());
}

fn put_number(buffer: &mut Vec<u8>, field: u32, number: u64) {
    if number != 0 {
        encode_key(field, WireType::Varint, buffer);
        encode_varint(number, buffer);
    }
}

/// What stands before the bytes of a field. Most have a number of one byte, and so has their length.
fn put_len(buffer: &mut Vec<u8>, field: u32, len: usize) {
    if field < 16 && len < 128 {
        let key = (field << 3) | WireType::LengthDelimited as u32;
        buffer.extend_from_slice(&[key as u8, len as u8]);
    } else {
        encode_key(field, WireType::LengthDelimited, buffer);
        encode_varint(len as u64, buffer);
    }
}

/// Appends a field, unless it is empty, and says where its bytes lie.
fn put_field(buffer: &mut Vec<u8>, field: u32, bytes: &[u8]) -> Span {
    if bytes.is_empty() {
        return Span::default();
    }
    put_len(buffer, field, bytes.len());
    buffer.extend_from_slice(bytes);
    Span::ending(buffer, bytes.len())
}

#[cfg(test)]
mod tests;
