//! The rows of objects, their ends, and kinds: what is in them.

mod key;
mod kind;
mod object;
mod tombstone;

pub(crate) use key::{decode_key, decode_slot, encode_key, encode_slot};
pub(crate) use kind::{decode_kind, encode_kind};
pub(crate) use object::{decode_object, encode_object};
pub(crate) use tombstone::{decode_tombstone, encode_tombstone};
