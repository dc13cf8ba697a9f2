//! HPACK, RFC 7541.

mod decoder;
pub(crate) mod encoder;
mod huffman;
mod integer;
mod names;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use self::{decoder::Decoder, table::OVERHEAD};

/// It is not HPACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;
