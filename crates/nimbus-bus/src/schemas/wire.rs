//! Reads encoded messages record by record, without a descriptor and without copying.

use std::fmt;

use prost::encoding::{WireType, decode_key, decode_varint};

/// The depth that all protobuf implementations allow; deeper messages could exhaust their stacks.
pub(super) const MAX_DEPTH: usize = 100;

/// The records of one message. Ends after the first error.
#[derive(Clone)]
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

/// One occurrence of a field.
pub(crate) struct Record<'a> {
    pub(crate) number: u32,
    pub(crate) value: Raw<'a>,
    /// Where its tag begins.
    pub(crate) start: usize,
    /// Where the content of `Raw::Len` and `Raw::Group` begins.
    pub(crate) content: usize,
    /// Where the next record begins.
    pub(crate) end: usize,
}

/// A value of which only the wire type is known.
#[derive(Clone, Copy)]
pub(crate) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Len(&'a [u8]),
    Group(&'a [u8]),
}

/// Where the bytes stop being protobuf.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) what: String,
}

// === impl Records ===

impl<'a> Records<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    fn read(&mut self) -> Result<Record<'a>, Malformed> {
        let start = self.at;
        let (number, wire_type) = self.key()?;
        let mut content = self.at;
        let value = match wire_type {
            WireType::Varint => Raw::Varint(self.varint()?),
            WireType::SixtyFourBit => Raw::Fixed64(u64::from_le_bytes(self.array()?)),
            WireType::ThirtyTwoBit => Raw::Fixed32(u32::from_le_bytes(self.array()?)),
            WireType::LengthDelimited => {
                let len = self.varint()?;
                content = self.at;
                Raw::Len(self.take(len, start)?)
            }
            WireType::StartGroup => self.group(number, start)?,
            WireType::EndGroup => return Err(Malformed::new(start, "a group ends that did not begin")),
        };
        Ok(Record { number, value, start, content, end: self.at })
    }

    fn group(&mut self, number: u32, start: usize) -> Result<Raw<'a>, Malformed> {
        if self.depth == MAX_DEPTH {
            return Err(Malformed::new(start, "nested too deeply"));
        }
        let content = self.at;
        loop {
            let end = self.at;
            if end == self.bytes.len() {
                return Err(Malformed::new(start, "a group does not end"));
            }
            if let (ends, WireType::EndGroup) = self.key()? {
                if ends != number {
                    return Err(Malformed::new(end, "another group ends than began"));
                }
                return Ok(Raw::Group(&self.bytes[content..end]));
            }
            let mut inner = Records { bytes: self.bytes, at: end, depth: self.depth + 1 };
            inner.read()?;
            self.at = inner.at;
        }
    }

    fn key(&mut self) -> Result<(u32, WireType), Malformed> {
        let mut rest = &self.bytes[self.at..];
        let key = decode_key(&mut rest).map_err(|_| Malformed::new(self.at, "not a field tag"))?;
        self.at = self.bytes.len() - rest.len();
        Ok(key)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut rest = &self.bytes[self.at..];
        let value = decode_varint(&mut rest).map_err(|_| Malformed::new(self.at, "not a varint"))?;
        self.at = self.bytes.len() - rest.len();
        Ok(value)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let rest = &self.bytes[self.at..];
        let Some(array) = rest.first_chunk::<N>() else {
            return Err(Malformed::new(self.at, format!("expected {N} bytes, {} are left", rest.len())));
        };
        self.at += N;
        Ok(*array)
    }

    fn take(&mut self, len: u64, start: usize) -> Result<&'a [u8], Malformed> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = usize::try_from(len).ok().and_then(|len| rest.get(..len)) else {
            return Err(Malformed::new(start, format!("expected {len} bytes, {} are left", rest.len())));
        };
        self.at += taken.len();
        Ok(taken)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.at = self.bytes.len();
        }
        Some(record)
    }
}

// === impl Raw ===

impl fmt::Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Varint(_) => f.write_str("a varint"),
            Self::Fixed64(_) => f.write_str("a fixed 64-bit value"),
            Self::Fixed32(_) => f.write_str("a fixed 32-bit value"),
            Self::Len(bytes) => write!(f, "a length and {} bytes", bytes.len()),
            Self::Group(_) => f.write_str("a group"),
        }
    }
}

// === impl Malformed ===

impl Malformed {
    pub(super) fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}
