//! Bytes as a list of parts: what is in them follows from them alone, and every list of parts can be written.

/// A part of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// What it is for.
    pub(crate) tag: u8,
    /// What is in it.
    pub(crate) body: &'a [u8],
}

/// A script has no more parts than this; bytes beyond them say nothing.
const MAX_PARTS: usize = 64;

/// Reads parts: a tag, two bytes of length, the body. The last one ends with the bytes, whatever its length says.
pub(crate) fn read(mut bytes: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let [tag, low, high, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (body, rest) = rest.split_at(length);
        parts.push(Part { tag: *tag, body });
        bytes = rest;
        if parts.len() == MAX_PARTS {
            break;
        }
    }
    parts
}

/// Writes parts, so that they are read again.
///
/// # Panics
/// If one is larger than 64 KiB.
pub(crate) fn write<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Part { tag, body } in parts {
        let length = u16::try_from(body.len()).expect("a part of at most 64 KiB");
        bytes.push(tag);
        bytes.extend(length.to_le_bytes());
        bytes.extend(body);
    }
    bytes
}
