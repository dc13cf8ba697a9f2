//! Messages as they come in: where they end, and how many parts they have.

/// Reads the bytes of gRPC messages, piece by piece, and keeps none of them.
///
/// Parts are the fields of a message, elements of lists included, and the fields of those: two levels, because that is where the
/// lists of all requests are. What merely looks like a message, such as a text, may be counted in part, but never has more
/// parts than bytes.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    prefix: Prefix,
    /// Bytes that are missing of the message.
    missing: usize,
    /// Bytes that were read of it.
    held: usize,
    parts: usize,
    outer: Fields,
    inner: Fields,
    /// Bytes that are missing of the field that `inner` is in.
    nested: usize,
}

/// The five bytes before each message: whether it is compressed, and its length.
#[derive(Debug, Default)]
struct Prefix {
    read: usize,
    length: u32,
}

/// A place in a sequence of fields.
#[derive(Debug, Default)]
struct Fields {
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the number of a field, of which only the wire type is of interest.
    Tag { wire_type: Option<u8> },
    /// In a number.
    Number,
    /// In the length of a field.
    Length { value: u64, shift: u32 },
    /// In bytes that are of no interest.
    Bytes(usize),
    /// In something that is no message.
    Nonsense,
}

/// What the next byte has begun.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// A field.
    Field,
    /// The content of a field that has a length.
    Content(usize),
}

const PREFIX_BYTES: usize = 5;

// === impl Scan ===

impl Scan {
    /// Reads what comes next.
    pub(crate) fn read(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.missing == 0 && self.prefix.read < PREFIX_BYTES {
                let (first, rest) = (data[0], &data[1..]);
                data = rest;
                self.begin(first);
                continue;
            }
            let (now, rest) = data.split_at(self.missing.min(data.len()));
            data = rest;
            self.fields(now);
            self.missing -= now.len();
            self.held += now.len();
            if self.missing == 0 {
                *self = Self::default();
            }
        }
    }

    /// Bytes of a message that is not complete.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Its parts, as far as it was read.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    /// Reads a byte of the prefix.
    fn begin(&mut self, byte: u8) {
        if self.prefix.read > 0 {
            self.prefix.length = self.prefix.length << 8 | u32::from(byte);
        }
        self.prefix.read += 1;
        if self.prefix.read == PREFIX_BYTES {
            self.missing = self.prefix.length as usize;
            if self.missing == 0 {
                *self = Self::default();
            }
        }
    }

    fn fields(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.nested > 0 {
                let (now, rest) = data.split_at(self.nested.min(data.len()));
                data = rest;
                self.nested -= now.len();
                self.inner_fields(now);
                if self.nested == 0 {
                    self.inner = Fields::default();
                }
                continue;
            }
            match self.outer.step(&mut data) {
                Step::Nothing => {}
                Step::Field => self.parts += 1,
                Step::Content(length) => {
                    self.outer = Fields::default();
                    self.nested = length;
                }
            }
        }
    }

    fn inner_fields(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            match self.inner.step(&mut data) {
                Step::Nothing => {}
                Step::Field => self.parts += 1,
                Step::Content(length) => self.inner.at = At::Bytes(length),
            }
        }
    }
}

// === impl Fields ===

impl Default for At {
    fn default() -> Self {
        Self::Tag { wire_type: None }
    }
}

impl Fields {
    /// Reads at least one byte, if there is one.
    fn step(&mut self, data: &mut &[u8]) -> Step {
        match self.at {
            At::Nonsense => {
                *data = &[];
                return Step::Nothing;
            }
            At::Bytes(0) => {
                self.at = At::default();
                return Step::Nothing;
            }
            At::Bytes(left) => {
                let now = left.min(data.len());
                *data = &data[now..];
                self.at = if left == now { At::default() } else { At::Bytes(left - now) };
                return Step::Nothing;
            }
            At::Tag { .. } | At::Number | At::Length { .. } => {}
        }
        let Some((&byte, rest)) = data.split_first() else { return Step::Nothing };
        *data = rest;
        let (more, bits) = (byte & 0x80 != 0, byte & 0x7f);
        match self.at {
            At::Tag { wire_type } => {
                let first = wire_type.is_none();
                let wire_type = wire_type.unwrap_or(bits & 7);
                self.at = if more {
                    At::Tag { wire_type: Some(wire_type) }
                } else {
                    match wire_type {
                        0 => At::Number,
                        1 => At::Bytes(8),
                        2 => At::Length { value: 0, shift: 0 },
                        // Groups have only a beginning and an end.
                        3 | 4 => At::default(),
                        5 => At::Bytes(4),
                        _ => At::Nonsense,
                    }
                };
                if first { Step::Field } else { Step::Nothing }
            }
            At::Number => {
                if !more {
                    self.at = At::default();
                }
                Step::Nothing
            }
            At::Length { value, shift } => {
                let value = value | u64::from(bits).checked_shl(shift).unwrap_or(0);
                if more && shift < 63 {
                    self.at = At::Length { value, shift: shift + 7 };
                    return Step::Nothing;
                }
                self.at = At::default();
                Step::Content(usize::try_from(value).unwrap_or(usize::MAX))
            }
            At::Bytes(_) | At::Nonsense => Step::Nothing,
        }
    }
}
