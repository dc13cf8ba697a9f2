//! Header blocks of the peer.

use std::borrow::Cow;

use crate::hpack::{Broken, huffman, integer, names::STATIC, table::Table};

/// Decodes header blocks, and remembers what they say to remember.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    capacity: usize,
    most: usize,
}

/// A field as it is in a block.
#[derive(Debug)]
struct Field<'a> {
    name: Cow<'a, [u8]>,
    value: Cow<'a, [u8]>,
}

// === impl Decoder ===

impl Decoder {
    /// A table of at most so many bytes, as our settings say.
    pub(crate) fn new(most: usize) -> Self {
        Self { table: Table::default(), capacity: most, most }
    }

    /// Decodes a block and gives each field to `take`.
    ///
    /// # Errors
    /// If it is no block. What was said before is then not known any more, and the connection cannot go on.
    pub(crate) fn decode(&mut self, block: &[u8], mut take: impl FnMut(&[u8], &[u8])) -> Result<(), Broken> {
        let mut rest = block;
        let mut begun = false;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let index = integer::read(&mut rest, 7)?;
                let (name, value) = self.field(index)?;
                take(name, value);
            } else if first & 0xe0 == 0x20 {
                let capacity = integer::read(&mut rest, 5)?;
                if begun || capacity > self.most {
                    return Err(Broken);
                }
                self.capacity = capacity;
                self.table.shrink(capacity);
                continue;
            } else {
                let is_kept = first & 0x40 != 0;
                let field = self.literal(&mut rest, if is_kept { 6 } else { 4 })?;
                take(&field.name, &field.value);
                if is_kept {
                    let (name, value) = (field.name.into_owned(), field.value);
                    self.table.insert(&name, &value, self.capacity);
                }
            }
            begun = true;
        }
        Ok(())
    }

    fn literal<'a>(&self, rest: &mut &'a [u8], bits: u8) -> Result<Field<'a>, Broken> {
        let index = integer::read(rest, bits)?;
        let name = if index == 0 { string(rest)? } else { Cow::Owned(self.field(index)?.0.to_vec()) };
        Ok(Field { name, value: string(rest)? })
    }

    fn field(&self, index: usize) -> Result<(&[u8], &[u8]), Broken> {
        let at = index.checked_sub(1).ok_or(Broken)?;
        match STATIC.get(at) {
            Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
            None => self.table.get(at - STATIC.len()).ok_or(Broken),
        }
    }

    #[cfg(test)]
    pub(crate) fn table_size(&self) -> usize {
        self.table.size()
    }
}

fn string<'a>(rest: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, Broken> {
    let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::read(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length).ok_or(Broken)?;
    *rest = after;
    if !is_huffman {
        return Ok(Cow::Borrowed(bytes));
    }
    // The shortest code has five bits.
    let mut text = Vec::with_capacity(length * 8 / 5);
    huffman::decode(bytes, &mut text)?;
    Ok(Cow::Owned(text))
}
