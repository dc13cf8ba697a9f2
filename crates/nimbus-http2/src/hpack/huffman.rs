//! The Huffman code of RFC 7541, appendix B.
//!
//! It is canonical: within a length, codes rise with the symbols, so that the lengths say everything.

use crate::hpack::Broken;

/// Bits of the code of each byte, and of the end of a string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

const SHORTEST: usize = 5;
const LONGEST: usize = 30;
const END: u16 = 256;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Row {
    /// The first code that is longer, as the leftmost bits of 32.
    limit: u64,
    first_code: u32,
    /// Where its symbols begin.
    first_symbol: usize,
}

/// By length.
const ROWS: [Row; LONGEST + 1] = rows();

/// In the order of their codes.
const SYMBOLS: [u16; 257] = symbols();

const fn symbols() -> [u16; 257] {
    let mut symbols = [0; 257];
    let (mut length, mut at) = (SHORTEST, 0);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol <= END {
            if LENGTHS[symbol as usize] as usize == length {
                symbols[at] = symbol;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
}

const fn rows() -> [Row; LONGEST + 1] {
    let mut rows = [Row { limit: 0, first_code: 0, first_symbol: 0 }; LONGEST + 1];
    let (mut length, mut code, mut at) = (SHORTEST, 0_u32, 0);
    while length <= LONGEST {
        rows[length].first_code = code;
        rows[length].first_symbol = at;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code += 1;
                at += 1;
            }
            symbol += 1;
        }
        rows[length].limit = (code as u64) << (32 - length);
        code <<= 1;
        length += 1;
    }
    rows
}

/// Decodes a string onto the end of `text`.
pub(crate) fn decode(bytes: &[u8], text: &mut Vec<u8>) -> Result<(), Broken> {
    let (mut bits, mut count, mut rest) = (0_u64, 0_usize, bytes);
    loop {
        while count <= 32
            && let Some((&byte, after)) = rest.split_first()
        {
            bits = bits << 8 | u64::from(byte);
            count += 8;
            rest = after;
        }
        // What is missing at the end is filled with ones, as the padding is.
        let ahead = if count >= 32 { bits >> (count - 32) } else { (bits << (32 - count)) | ((1 << (32 - count)) - 1) };
        let ahead = ahead & 0xffff_ffff;
        let length = (SHORTEST..=LONGEST).find(|length| ahead < ROWS[*length].limit).unwrap_or(LONGEST);
        if length > count {
            let is_padding = count < 8 && bits & ((1 << count) - 1) == (1 << count) - 1;
            return if is_padding { Ok(()) } else { Err(Broken) };
        }
        let row = &ROWS[length];
        let code = u32::try_from(ahead >> (32 - length)).map_err(|_| Broken)?;
        let symbol = SYMBOLS[row.first_symbol + (code - row.first_code) as usize];
        text.push(u8::try_from(symbol).map_err(|_| Broken)?);
        count -= length;
    }
}

#[cfg(test)]
pub(crate) fn encode(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u64, 0);
    for byte in text {
        let length = usize::from(LENGTHS[usize::from(*byte)]);
        let at = SYMBOLS.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
        let row = &ROWS[length];
        bits = bits << length | u64::from(row.first_code + u32::try_from(at - row.first_symbol).unwrap());
        count += length;
        while count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    if count > 0 {
        bytes.push((bits << (8 - count) & 0xff) as u8 | ((1_u16 << (8 - count)) - 1) as u8);
    }
    bytes
}
