//! Uids, most of which are numbers.

/// Where a uid lies. A text has one form: two are the same if their forms are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackedUid<'a> {
    Text(&'a [u8]),
    /// 32 lower-case hexadecimal digits, as a bus makes them up.
    Digits(&'a Number),
    /// A UUID with its dashes and in lower case, as everybody else makes them up.
    Dashed(&'a Number),
}

/// What so many digits say.
pub(crate) type Number = [u8; 16];

/// Digits of a number.
const DIGITS: usize = 2 * size_of::<Number>();

/// The same and the dashes.
const DASHED: usize = DIGITS + 4;

/// Where digits begin between dashes, and how many.
const GROUPS: [(usize, usize); 5] = [(0, 8), (9, 4), (14, 4), (19, 4), (24, 12)];

// === impl PackedUid ===

impl<'a> PackedUid<'a> {
    /// The form of a text. Lies in `room` if it is a number.
    pub(crate) fn new(text: &'a [u8], room: &'a mut Number) -> Self {
        if let Ok(digits) = text.try_into()
            && let Some(number) = number(digits)
        {
            *room = number;
            return Self::Digits(room);
        }
        if let Ok(dashed) = text.try_into()
            && let Some(number) = undashed(dashed).and_then(|digits| number(&digits))
        {
            *room = number;
            return Self::Dashed(room);
        }
        Self::Text(text)
    }

    /// Whether it is this text.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.len() == text.len() && self.with_text(|own| own == text)
    }

    /// The bytes that are kept of it.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Text(text) => text,
            Self::Digits(number) | Self::Dashed(number) => &number[..],
        }
    }

    /// Length of the text.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Digits(_) => DIGITS,
            Self::Dashed(_) => DASHED,
        }
    }

    /// Lends the text.
    pub(crate) fn with_text<T>(&self, with: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Text(text) => with(text),
            Self::Digits(number) => with(&digits(number)),
            Self::Dashed(number) => with(&dashed(&digits(number))),
        }
    }
}

/// The number that lower-case hexadecimal digits say, if these are some.
fn number(digits: &[u8; DIGITS]) -> Option<Number> {
    // All are looked at, whatever the first ones are: then a processor can look at many at once.
    let is_digit = |digit: u8| (digit.wrapping_sub(b'0') < 10) | (digit.wrapping_sub(b'a') < 6);
    if !digits.iter().fold(true, |all, digit| all & is_digit(*digit)) {
        return None;
    }
    let values = digits.map(|digit| if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 });
    let mut number = Number::default();
    for (byte, pair) in number.iter_mut().zip(values.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(number)
}

/// The digits that say a number.
fn digits(number: &Number) -> [u8; DIGITS] {
    let mut values = [0; DIGITS];
    for (pair, byte) in values.chunks_exact_mut(2).zip(number) {
        pair[0] = byte >> 4;
        pair[1] = byte & 15;
    }
    values.map(|value| value + if value < 10 { b'0' } else { b'a' - 10 })
}

fn dashed(digits: &[u8; DIGITS]) -> [u8; DASHED] {
    let mut text = [b'-'; DASHED];
    let mut rest = &digits[..];
    for (at, len) in GROUPS {
        let (group, others) = rest.split_at(len);
        text[at..at + len].copy_from_slice(group);
        rest = others;
    }
    text
}

/// What is between the dashes, if these are where they belong.
fn undashed(text: &[u8; DASHED]) -> Option<[u8; DIGITS]> {
    let mut digits = [0; DIGITS];
    let mut rest = &mut digits[..];
    for (at, len) in GROUPS {
        if at > 0 && text[at - 1] != b'-' {
            return None;
        }
        let (group, others) = rest.split_at_mut(len);
        group.copy_from_slice(&text[at..at + len]);
        rest = others;
    }
    Some(digits)
}
