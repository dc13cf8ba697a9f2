//! Variations of bytes, such as hostile and broken programs make them.

use rand::{RngExt as _, rngs::StdRng};

/// Numbers that are at the edge of something.
const EDGES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, 0x08, 0x0a, b','];

/// No variation is larger than the larger of this and what it is made from.
const MAX: usize = 1 << 16;

/// Some variation of `bytes`; `other` lends parts of itself.
pub fn mutate(bytes: &[u8], other: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut varied = bytes.to_vec();
    for _ in 0..random.random_range(1..=4) {
        step(&mut varied, other, random);
    }
    varied.truncate(MAX.max(bytes.len()));
    varied
}

fn step(bytes: &mut Vec<u8>, other: &[u8], random: &mut StdRng) {
    let at = random.random_range(0..=bytes.len());
    let end = random.random_range(at..=bytes.len().min(at + 64));
    match random.random_range(0..10) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
        1 if at < bytes.len() => bytes[at] = random.random(),
        2 if at < bytes.len() => bytes[at] = EDGES[random.random_range(0..EDGES.len())],
        3 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(if random.random() { 1 } else { u8::MAX }),
        4 => bytes.insert(at, random.random()),
        5 => drop(bytes.drain(at..end)),
        6 => bytes.truncate(at),
        // Twice the same.
        7 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        // Something of the other.
        8 if !other.is_empty() => {
            let from = random.random_range(0..other.len());
            let to = random.random_range(from..=other.len().min(from + 256));
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        // A number that is far too large.
        _ => {
            let end = (at + random.random_range(1..=9)).min(bytes.len());
            bytes[at..end].fill(0xff);
        }
    }
}
