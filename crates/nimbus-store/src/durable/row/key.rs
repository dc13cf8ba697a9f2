//! The keys of rows.

use std::str;

use nimbus_core::{Kind, ObjectKey, Revision};

use crate::record::Slot;

/// Separates the parts of a key. No name can have it, and it sorts before all that names can have, so rows have the
/// order of keys.
const SEPARATOR: char = '\0';

/// The key of an object's row.
pub(crate) fn encode_key(key: &ObjectKey) -> Vec<u8> {
    format!("{}{SEPARATOR}{}{SEPARATOR}{}", key.kind(), key.namespace(), key.name()).into_bytes()
}

/// The object of a row's key.
pub(crate) fn decode_key(bytes: &[u8]) -> Result<ObjectKey, String> {
    let parts = str::from_utf8(bytes).ok().and_then(|text| {
        let (kind, rest) = text.split_once(SEPARATOR)?;
        let (namespace, name) = rest.split_once(SEPARATOR)?;
        ObjectKey::new(Kind::new(kind).ok()?, namespace, name).ok()
    });
    parts.ok_or_else(|| "it is the name of no object".into())
}

/// The key of a tombstone's row, so that rows have the order of slots.
pub(crate) fn encode_slot(slot: Slot) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&slot.revision.0.to_be_bytes());
    key[8..].copy_from_slice(&slot.seq.to_be_bytes());
    key
}

/// The slot of a row's key.
pub(crate) fn decode_slot(bytes: &[u8]) -> Result<Slot, String> {
    let (revision, seq) = bytes.split_at_checked(8).ok_or("it is no revision")?;
    Ok(Slot {
        revision: Revision(u64::from_be_bytes(revision.try_into().map_err(|_| "it is no revision")?)),
        seq: u32::from_be_bytes(seq.try_into().map_err(|_| "it is no place in a transaction")?),
    })
}
