//! What is to be written: few bytes of our own, and slices that are shared with others and never copied.

use std::{collections::VecDeque, io::IoSlice};

use bytes::{Buf as _, Bytes};

/// What is to be written, in order.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes of our own, one after the other.
    own: Vec<u8>,
    /// Of them, so many are written.
    written: usize,
    parts: VecDeque<Part>,
    len: usize,
}

#[derive(Debug)]
enum Part {
    /// So many bytes of our own.
    Own(usize),
    Shared(Bytes),
}

/// What is shorter costs less to copy than to be a part of its own.
const COPY: usize = 1 << 10;

/// Room that is kept for the next time.
const KEEP: usize = 16 << 10;

// === impl Output ===

impl Output {
    /// Bytes that are not written yet.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether everything is written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that only this connection holds.
    pub(crate) fn own_len(&self) -> usize {
        self.own.len() - self.written
    }

    pub(crate) fn own(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.len += bytes.len();
        match self.parts.back_mut() {
            Some(Part::Own(length)) => *length += bytes.len(),
            _ => self.parts.push_back(Part::Own(bytes.len())),
        }
    }

    pub(crate) fn shared(&mut self, bytes: Bytes) {
        if bytes.len() <= COPY {
            self.own(&bytes);
            return;
        }
        self.len += bytes.len();
        self.parts.push_back(Part::Shared(bytes));
    }

    /// The first bytes, as slices for one write. Returns how many there are.
    pub fn slices<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let mut own = &self.own[self.written..];
        let mut count = 0;
        for (slot, part) in into.iter_mut().zip(&self.parts) {
            *slot = IoSlice::new(match part {
                Part::Own(length) => {
                    let (now, rest) = own.split_at(*length);
                    own = rest;
                    now
                }
                Part::Shared(bytes) => bytes,
            });
            count += 1;
        }
        count
    }

    /// So many bytes were written.
    pub fn advance(&mut self, mut written: usize) {
        self.len -= written;
        while written > 0 {
            match self.parts.front_mut().expect("no more is written than there is") {
                Part::Own(length) => {
                    let now = written.min(*length);
                    *length -= now;
                    self.written += now;
                    written -= now;
                    if *length > 0 {
                        break;
                    }
                }
                Part::Shared(bytes) => {
                    let now = written.min(bytes.len());
                    bytes.advance(now);
                    written -= now;
                    if !bytes.is_empty() {
                        break;
                    }
                }
            }
            self.parts.pop_front();
        }
        if self.own_len() == 0 {
            self.own.clear();
            self.own.shrink_to(KEEP);
            self.written = 0;
        } else if self.written > KEEP {
            self.own.drain(..self.written);
            self.written = 0;
        }
    }

    /// Everything in one piece, for tests.
    #[doc(hidden)]
    pub fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            let count = self.slices(&mut slices);
            let before = all.len();
            slices[..count].iter().for_each(|slice| all.extend_from_slice(slice));
            self.advance(all.len() - before);
        }
        all
    }
}

#[cfg(test)]
mod tests;
