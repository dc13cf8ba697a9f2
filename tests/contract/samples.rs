//! Values of every message of the contract, with nothing in them at its default.

mod bus;
mod control;
mod fleet;
mod lease;
mod object;
mod options;
mod publisher;

use std::collections::BTreeMap;

use bytes::Bytes;
use prost_types::Any;

use crate::golden::Case;

/// Every sample, by the file of the contract that its message is in.
pub(crate) fn all() -> Vec<Case> {
    [
        object::cases(),
        bus::cases(),
        publisher::cases(),
        fleet::cases(),
        lease::cases(),
        control::cases(),
        options::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn strings<const N: usize>(values: [&str; N]) -> Vec<String> {
    values.map(str::to_owned).into()
}

fn labels<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// A packed message of a kind that nobody registered; the bytes are its field 1, a short string.
fn any(kind: &str) -> Any {
    Any { type_url: format!("type.googleapis.com/{kind}"), value: b"\x0a\x05hello".to_vec() }
}

/// `length` bytes, each different from its neighbours.
fn bytes(length: usize) -> Bytes {
    (0_u8..=255).cycle().skip(1).take(length).collect()
}
