//! Integers of RFC 7541, section 5.1.

use crate::hpack::Broken;

/// More bytes than any length or index takes that is within limits.
const MAX_BYTES: u32 = 4;

/// Reads an integer whose first byte has `bits` of it.
pub(crate) fn read(bytes: &mut &[u8], bits: u8) -> Result<usize, Broken> {
    let (&first, mut rest) = bytes.split_first().ok_or(Broken)?;
    let mask = (1_usize << bits) - 1;
    let mut value = usize::from(first) & mask;
    if value == mask {
        let mut shift = 0;
        loop {
            let (&byte, after) = rest.split_first().ok_or(Broken)?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift >= 7 * MAX_BYTES {
                return Err(Broken);
            }
        }
    }
    *bytes = rest;
    Ok(value)
}

/// Writes an integer whose first byte has `bits` of it, and `first` above them.
pub(crate) fn write(into: &mut Vec<u8>, first: u8, bits: u8, value: usize) {
    let mask = (1_usize << bits) - 1;
    if value < mask {
        into.push(first | low_byte(value));
        return;
    }
    into.push(first | low_byte(mask));
    let mut left = value - mask;
    while left >= 0x80 {
        into.push(low_byte(left & 0x7f) | 0x80);
        left >>= 7;
    }
    into.push(low_byte(left));
}

fn low_byte(value: usize) -> u8 {
    u8::try_from(value).expect("the caller has cut it to a byte")
}
