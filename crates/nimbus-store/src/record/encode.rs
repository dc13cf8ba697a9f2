//! Fields of objects as bytes: what the generated code would write, without a message in between.

use std::{cell::RefCell, mem};

use bytes::BufMut as _;
use nimbus_core::{Annotations, Audience, Generation, Labels, PublisherId, Reference, Revision, Uid};
use prost::{
    Message as _,
    encoding::{WireType, decode_varint, encode_key, encode_varint, encoded_len_varint, key_len},
};

use crate::{record::Decision, txn::Draft};

thread_local! {
    /// Where objects are put together: what is kept of them has exactly their size.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that has grown beyond this is not kept.
const KEPT: usize = 64 << 10;

pub(crate) const KIND: u32 = 1;
pub(crate) const NAMESPACE: u32 = 2;
pub(crate) const NAME: u32 = 3;
pub(crate) const UID: u32 = 4;
pub(crate) const GENERATION: u32 = 5;
pub(crate) const REVISION: u32 = 6;
const LABELS: u32 = 7;
const REFS: u32 = 8;
pub(crate) const OWNER: u32 = 9;
pub(crate) const MANAGER: u32 = 10;
pub(crate) const SPEC: u32 = 11;
pub(crate) const STATUS: u32 = 12;
pub(crate) const OBSERVED_GENERATION: u32 = 13;
const AUDIENCE: u32 = 14;
const ANNOTATIONS: u32 = 15;
const FINALIZERS: u32 = 16;
const DELETING: u32 = 17;

/// Of a reference, whether it is weak.
const WEAK: u32 = 4;

/// Of a reference, whether the spec says so.
const DECLARED: u32 = 6;

/// Of an `Any`, its type.
pub(crate) const ANY_TYPE: u32 = 1;

/// Of an `Any`, the message in it.
pub(crate) const ANY_VALUE: u32 = 2;

/// Lends a buffer that is empty.
pub(crate) fn with_buffer<T>(with: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut buffer = BUFFER.take();
    buffer.clear();
    let made = with(&mut buffer);
    if buffer.capacity() <= KEPT {
        BUFFER.replace(mem::take(&mut buffer));
    }
    made
}

/// Appends the fields from the generation to the references.
pub(crate) fn put_head(buffer: &mut Vec<u8>, generation: Generation, labels: &Labels, refs: &[Reference]) {
    put_number(buffer, GENERATION, generation.0);
    for (key, value) in labels.iter() {
        put_texts(buffer, LABELS, [key, value], []);
    }
    for Reference { to, weak, declared } in refs {
        let flags = [(WEAK, *weak), (DECLARED, *declared)];
        put_texts(buffer, REFS, [to.kind().as_str(), to.namespace(), to.name()], flags);
    }
}

/// Appends the fields from the observed generation to the mark of a delete.
pub(crate) fn put_middle(buffer: &mut Vec<u8>, content: &Decision<'_>) {
    put_number(buffer, OBSERVED_GENERATION, content.observed.0);
    put_annotations(buffer, content.annotations);
    for name in content.finalizers.iter() {
        // In a list, also what is empty is there.
        put_header(buffer, FINALIZERS, name.len());
        buffer.put_slice(name.as_bytes());
    }
    put_number(buffer, DELETING, content.deleting.into());
}

pub(crate) fn put_annotations(buffer: &mut Vec<u8>, annotations: &Annotations) {
    for (key, value) in annotations.iter() {
        put_texts(buffer, ANNOTATIONS, [key, value], []);
    }
}

/// The object that a draft asks for, as an observer would see it.
pub(crate) fn encode_draft(draft: &Draft, manager: &PublisherId, revision: Revision) -> Vec<u8> {
    let Draft { key, uid, generation, labels, refs, owner, annotations, audience, spec } = draft;
    with_buffer(|buffer| {
        put_text(buffer, KIND, key.kind().as_str());
        put_text(buffer, NAMESPACE, key.namespace());
        put_text(buffer, NAME, key.name());
        put_text(buffer, UID, uid.as_ref().map_or("", Uid::as_str));
        put_head(buffer, generation.unwrap_or_default(), labels, refs);
        if let Some(owner) = owner {
            put_texts(buffer, OWNER, owner.texts(), []);
        }
        put_text(buffer, MANAGER, manager.as_str());
        put_annotations(buffer, annotations);
        put_field(buffer, SPEC, spec);
        put_revision(buffer, revision);
        buffer.extend_from_slice(&audience_field(audience));
        // Exactly its size.
        buffer.as_slice().to_vec()
    })
}

/// Appends the revision, also where it is zero.
pub(crate) fn put_revision(buffer: &mut Vec<u8>, revision: Revision) {
    encode_key(REVISION, WireType::Varint, buffer);
    encode_varint(revision.0, buffer);
}

/// The audience as a field; empty for everyone.
pub(crate) fn audience_field(audience: &Audience) -> Box<[u8]> {
    let Some(audience) = audience.to_wire() else { return Box::default() };
    let mut field = Vec::with_capacity(field_len(AUDIENCE, audience.encoded_len()));
    encode_key(AUDIENCE, WireType::LengthDelimited, &mut field);
    audience.encode_length_delimited(&mut field).expect("a growing buffer has room");
    field.into()
}

/// A message whose first fields are text, and perhaps flags after them.
fn put_texts<const M: usize, const N: usize>(
    buffer: &mut Vec<u8>,
    field: u32,
    texts: [&str; M],
    flags: [(u32, bool); N],
) {
    let numbered = || (1..).zip(texts);
    let set = || flags.into_iter().filter(|(_, flag)| *flag);
    let len: usize = numbered().map(|(field, text)| text_len(field, text.len())).sum();
    let len = len + set().map(|(field, _)| key_len(field) + 1).sum::<usize>();
    put_header(buffer, field, len);
    numbered().for_each(|(field, text)| put_text(buffer, field, text));
    set().for_each(|(field, flag)| put_number(buffer, field, flag.into()));
}

/// Bytes that a field of that length takes, with its key and its length.
pub(crate) fn field_len(field: u32, len: usize) -> usize {
    // Most keys and lengths are a byte each.
    if is_short(field, len as u64) { 2 + len } else { key_len(field) + encoded_len_varint(len as u64) + len }
}

/// The same, where what is empty is not there.
pub(crate) fn text_len(field: u32, len: usize) -> usize {
    if len == 0 { 0 } else { field_len(field, len) }
}

pub(crate) fn put_text(buffer: &mut Vec<u8>, field: u32, text: &str) {
    put_field(buffer, field, text.as_bytes());
}

/// Appends a field, unless it is empty. Most that is put is known to be a short one where this is inlined.
#[inline(always)]
pub(crate) fn put_field(buffer: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_header(buffer, field, bytes.len());
        buffer.put_slice(bytes);
    }
}

/// Appends the key and the length of a field.
#[inline(always)]
pub(crate) fn put_header(buffer: &mut Vec<u8>, field: u32, len: usize) {
    if is_short(field, len as u64) {
        let key = (field << 3 | WireType::LengthDelimited as u32) as u8;
        return buffer.extend_from_slice(&[key, len as u8]);
    }
    put_long_header(buffer, field, len);
}

fn put_long_header(buffer: &mut Vec<u8>, field: u32, len: usize) {
    if field < 16 && len < 0x4000 {
        // A spec, mostly.
        let key = (field << 3 | WireType::LengthDelimited as u32) as u8;
        return buffer.extend_from_slice(&[key, len as u8 | 0x80, (len >> 7) as u8]);
    }
    encode_key(field, WireType::LengthDelimited, buffer);
    encode_varint(len as u64, buffer);
}

/// Appends a length.
#[inline(always)]
pub(crate) fn put_len(buffer: &mut Vec<u8>, len: usize) {
    if len < 0x80 { buffer.put_u8(len as u8) } else { encode_varint(len as u64, buffer) }
}

/// The number with which these bytes begin, if they begin with one, and what is after it.
#[inline(always)]
pub(crate) fn read_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match bytes {
        [number @ ..0x80, rest @ ..] => Some((u64::from(*number), rest)),
        [low, high @ ..0x80, rest @ ..] => Some((u64::from(low & 0x7f) | u64::from(*high) << 7, rest)),
        _ => read_long_number(bytes),
    }
}

#[cold]
fn read_long_number(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    Some((decode_varint(&mut bytes).ok()?, bytes))
}

/// The length with which these bytes of our own begin, and what is after it.
#[inline(always)]
pub(crate) fn take_len(bytes: &[u8]) -> (usize, &[u8]) {
    let (len, rest) = read_number(bytes).expect("the store encoded it");
    (len as usize, rest)
}

/// Appends a field, unless it is zero.
pub(crate) fn put_number(buffer: &mut Vec<u8>, field: u32, number: u64) {
    if is_short(field, number) && number != 0 {
        buffer.extend_from_slice(&[(field << 3) as u8, number as u8]);
    } else if number != 0 {
        encode_key(field, WireType::Varint, buffer);
        encode_varint(number, buffer);
    }
}

/// Whether the key of a field takes one byte, and a number another one.
fn is_short(field: u32, number: u64) -> bool {
    field < 16 && number < 128
}

/// The number with which these fields begin, if they begin with this one; else zero, which is not written. The field must
/// be one of the first fifteen.
pub(crate) fn leading_number(fields: &[u8], field: u32) -> u64 {
    match fields.split_first() {
        Some((key, mut rest)) if u32::from(*key) == field << 3 => {
            decode_varint(&mut rest).expect("the store encoded it")
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
