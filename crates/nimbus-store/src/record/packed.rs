//! What an object has of its own, in one piece of memory.

use std::{borrow::Cow, str};

use bytes::BufMut as _;
use nimbus_core::Uid;
use prost::encoding::encoded_len_varint;

use crate::record::{
    Decision,
    encode::{
        ANY_VALUE, NAME, NAMESPACE, OWNER, SPEC, STATUS, UID, field_len, put_field, put_head, put_header, put_len,
        put_middle, read_number, take_len, text_len, with_buffer,
    },
    family::Family,
    owner::PackedOwner,
    uid::{Number, PackedUid},
};

/// What an object has of its own, in one piece of memory:
///
/// ```text
/// length of the namespace · length of the name · namespace · name
/// length of the uid · uid; or a mark of its form · the number that its digits say
/// length of the head
/// twice the length of the middle, and one more if there is an owner
/// twice the length of the status, and one more if the spec is only a message
/// length of the owner, if there is one
/// head: the encoded fields from the generation to the references
/// owner: as in `PackedOwner`
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
    uid: PackedUid<'a>,
    pub(crate) head: &'a [u8],
    owner: &'a [u8],
    pub(crate) middle: &'a [u8],
    pub(crate) status: &'a [u8],
    /// The type of the spec is that of the kind, and not here.
    typed: bool,
    spec: &'a [u8],
}

/// Stands for the length of a uid that is kept as a number. No name is as long.
const UID_DIGITS: u8 = u8::MAX;

/// The same with dashes.
const UID_DASHED: u8 = u8::MAX - 1;

// === impl Packed ===

impl Packed {
    pub(crate) fn new(content: &Decision<'_>, family: &Family) -> Self {
        let Decision { key, uid, spec, status, .. } = *content;
        let (namespace, name) = (key.namespace().as_bytes(), key.name().as_bytes());
        let (message, typed) = match message(spec, &family.type_field) {
            Some(message) => (message, true),
            None => (spec, false),
        };
        let mut room = Number::default();
        let uid = PackedUid::new(uid.as_str().as_bytes(), &mut room);
        with_buffer(|fields| {
            let Decision { generation, labels, refs, owner, .. } = *content;
            put_head(fields, generation, labels, refs);
            let head = fields.len();
            if let Some(owner) = owner {
                PackedOwner::pack(fields, owner, key, family);
            }
            let owner = fields.len() - head;
            put_middle(fields, content);
            let middle = fields.len() - head - owner;
            let flagged = |len: usize, flag: bool| len << 1 | usize::from(flag);
            let lengths = [head, flagged(middle, owner > 0), flagged(status.len(), typed)];
            let names = 3 + namespace.len() + name.len() + uid.bytes().len();
            let number_len = |len: usize| encoded_len_varint(len as u64);
            let numbers = lengths.map(number_len).iter().sum::<usize>() + if owner > 0 { number_len(owner) } else { 0 };
            let size = names + numbers + fields.len() + status.len() + message.len();
            // Exactly its size: an object may live for years.
            let mut bytes = Vec::with_capacity(size);
            bytes.put_u8(len_of(namespace));
            bytes.put_u8(len_of(name));
            bytes.put_slice(namespace);
            bytes.put_slice(name);
            bytes.put_u8(match uid {
                PackedUid::Text(text) => len_of(text),
                PackedUid::Digits(_) => UID_DIGITS,
                PackedUid::Dashed(_) => UID_DASHED,
            });
            bytes.put_slice(uid.bytes());
            lengths.into_iter().for_each(|len| put_len(&mut bytes, len));
            if owner > 0 {
                put_len(&mut bytes, owner);
            }
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
        self.parts().uid.with_text(|uid| Uid::new(text_of(uid))).expect("it was one before")
    }

    pub(crate) fn has_uid(&self, uid: &Uid) -> bool {
        self.parts().uid.is(uid.as_str().as_bytes())
    }

    pub(crate) fn has_uid_of(&self, other: &Self) -> bool {
        self.parts().uid == other.parts().uid
    }

    /// On whose behalf the object exists.
    pub(crate) fn owner<'a>(&'a self, family: &'a Family) -> Option<PackedOwner<'a>> {
        self.parts().owner(family)
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        let (namespace, name) = self.names();
        let (mark, rest) = self.bytes[2 + namespace.len() + name.len()..].split_first().expect("the store packed it");
        let number = || rest.first_chunk().expect("the store packed it");
        let uid = match *mark {
            UID_DIGITS => PackedUid::Digits(number()),
            UID_DASHED => PackedUid::Dashed(number()),
            len => PackedUid::Text(&rest[..usize::from(len)]),
        };
        let (head, rest) = take_len(&rest[uid.bytes().len()..]);
        let (middle, rest) = take_len(rest);
        let (status, rest) = take_len(rest);
        let (owner, rest) = if middle & 1 == 1 { take_len(rest) } else { (0, rest) };
        let typed = status & 1 == 1;
        let (head, rest) = rest.split_at(head);
        let (owner, rest) = rest.split_at(owner);
        let (middle, rest) = rest.split_at(middle >> 1);
        let (status, spec) = rest.split_at(status >> 1);
        Parts { namespace, name, uid, head, owner, middle, status, typed, spec }
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
        uid.with_text(|uid| put_field(buffer, UID, uid));
        buffer.put_slice(head);
        if let Some(owner) = parts.owner(family) {
            owner.put(buffer);
        }
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
        let owner = parts.owner(family).map_or(0, |owner| field_len(OWNER, owner.len()));
        let spec = if parts.has_spec() { field_len(SPEC, parts.spec_len(family)) } else { 0 };
        let names = text_len(NAMESPACE, namespace.len()) + text_len(NAME, name.len()) + text_len(UID, uid.len());
        let shared = family.kind_field.len() + family.manager_field.len();
        shared + names + head.len() + owner + middle.len() + spec + text_len(STATUS, status.len())
    }
}

// === impl Parts ===

impl<'a> Parts<'a> {
    #[inline(always)]
    fn owner(&self, family: &'a Family) -> Option<PackedOwner<'a>> {
        (!self.owner.is_empty()).then(|| PackedOwner::read(self.owner, self.namespace, self.name, family))
    }

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
    let (len, message) = read_number(rest.strip_prefix(&[(ANY_VALUE << 3) as u8 | 2])?)?;
    // Also a length can be written in more than one way.
    let whole = len > 0 && len == message.len() as u64 && rest.len() == field_len(ANY_VALUE, message.len());
    whole.then_some(message)
}
