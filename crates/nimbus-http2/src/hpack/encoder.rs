//! Header blocks of ours: nothing is remembered, so that a connection costs no table.

use http::{HeaderMap, HeaderValue, StatusCode};

use crate::hpack::{integer, names::STATIC};

/// Never to be remembered, by nobody on the way either.
const SECRET: u8 = 0x10;

/// Writes the status of a response.
pub(crate) fn status(into: &mut Vec<u8>, status: StatusCode) {
    match STATIC.iter().position(|(name, value)| *name == ":status" && *value == status.as_str()) {
        Some(at) => integer::write(into, 0x80, 7, at + 1),
        None => literal(into, 0, ":status", status.as_str().as_bytes()),
    }
}

/// Writes fields.
pub(crate) fn fields(into: &mut Vec<u8>, fields: &HeaderMap<HeaderValue>) {
    for (name, value) in fields {
        let first = if value.is_sensitive() { SECRET } else { 0 };
        literal(into, first, name.as_str(), value.as_bytes());
    }
}

fn literal(into: &mut Vec<u8>, first: u8, name: &str, value: &[u8]) {
    let known = STATIC.iter().position(|(known, _)| *known == name);
    integer::write(into, first, 4, known.map_or(0, |at| at + 1));
    if known.is_none() {
        integer::write(into, 0, 7, name.len());
        into.extend_from_slice(name.as_bytes());
    }
    integer::write(into, 0, 7, value.len());
    into.extend_from_slice(value);
}
