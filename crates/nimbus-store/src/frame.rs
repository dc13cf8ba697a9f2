//! Frames as they go onto the wire, with the five bytes that gRPC puts before a message.

use bytes::{BufMut, Bytes};
use nimbus_core::Revision;
use nimbus_wire::v1;
use prost::{
    Message as _,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};

use crate::record::{Grave, Record};

/// An event to be encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    /// An object, as an agent or (`true`) an observer sees it.
    Put(&'a Record, bool),
    /// An object that the reader should no longer have.
    Removal(&'a Grave),
}

/// A flag for compression and the length of the message.
const PREFIX: usize = 5;

/// What a frame has beside its events, at most: prefix, key and length of the batch, the revision that it completes.
pub(crate) const ENVELOPE: usize = PREFIX + 1 + 5 + 11;

/// A digest of 16 bytes as a field: key, length, bytes.
const DIGEST_FIELD_LEN: usize = 18;

const FRAME_BATCH: u32 = 3;
const BATCH_EVENTS: u32 = 1;
const BATCH_REVISION: u32 = 2;
const EVENT_PUT: u32 = 1;
const EVENT_DELETE: u32 = 2;
const EVENT_DIGEST: u32 = 3;

/// Encodes any message with its prefix.
///
/// # Panics
/// Never: the buffer grows.
pub fn message(message: &impl prost::Message) -> Bytes {
    let len = message.encoded_len();
    let mut buffer = Vec::with_capacity(PREFIX + len);
    put_prefix(&mut buffer, len);
    message.encode(&mut buffer).expect("a growing buffer has room");
    buffer.into()
}

/// Encodes a batch, which completes a revision if it is the last of its group.
pub(crate) fn batch<'a>(items: impl Iterator<Item = Item<'a>> + Clone, completes: Option<Revision>) -> Vec<u8> {
    let revision_len = completes.map_or(0, |revision| 1 + encoded_len_varint(revision.0));
    let batch_len = items.clone().map(Item::len).sum::<usize>() + revision_len;
    let frame_len = 1 + encoded_len_varint(batch_len as u64) + batch_len;
    let mut buffer = Vec::with_capacity(PREFIX + frame_len);
    put_prefix(&mut buffer, frame_len);
    encode_key(FRAME_BATCH, WireType::LengthDelimited, &mut buffer);
    encode_varint(batch_len as u64, &mut buffer);
    items.for_each(|item| item.encode(&mut buffer));
    if let Some(revision) = completes {
        encode_key(BATCH_REVISION, WireType::Varint, &mut buffer);
        encode_varint(revision.0, &mut buffer);
    }
    debug_assert_eq!(buffer.len(), PREFIX + frame_len);
    buffer
}

fn put_prefix(buffer: &mut Vec<u8>, len: usize) {
    buffer.put_u8(0);
    buffer.put_u32(u32::try_from(len).expect("frames are limited"));
}

// === impl Item ===

impl Item<'_> {
    /// Bytes that the event takes within a batch.
    pub(crate) fn len(self) -> usize {
        let event = self.event_len();
        1 + encoded_len_varint(event as u64) + event
    }

    fn event_len(self) -> usize {
        let (content, digest) = match self {
            Self::Put(record, observer) => (record.encoded_len(observer), DIGEST_FIELD_LEN),
            Self::Removal(grave) => (removal(grave).encoded_len(), 0),
        };
        1 + encoded_len_varint(content as u64) + content + digest
    }

    fn encode(self, buffer: &mut Vec<u8>) {
        encode_key(BATCH_EVENTS, WireType::LengthDelimited, buffer);
        encode_varint(self.event_len() as u64, buffer);
        match self {
            Self::Put(record, observer) => {
                encode_key(EVENT_PUT, WireType::LengthDelimited, buffer);
                encode_varint(record.encoded_len(observer) as u64, buffer);
                record.encode(observer, buffer);
                encode_key(EVENT_DIGEST, WireType::LengthDelimited, buffer);
                encode_varint(16, buffer);
                buffer.put_slice(record.leaf(observer).as_bytes());
            }
            Self::Removal(grave) => {
                encode_key(EVENT_DELETE, WireType::LengthDelimited, buffer);
                removal(grave).encode_length_delimited(buffer).expect("a growing buffer has room");
            }
        }
    }
}

fn removal(grave: &Grave) -> v1::Removal {
    let v1::Key { kind, namespace, name } = grave.key.to_wire();
    v1::Removal {
        kind,
        namespace,
        name,
        uid: grave.uid.to_string(),
        revision: grave.slot.revision.0,
        out_of_scope: grave.out_of_scope,
    }
}
