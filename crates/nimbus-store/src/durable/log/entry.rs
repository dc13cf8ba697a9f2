//! One group of writes, as it lies in the log.

use nimbus_core::{Digest, Epoch, LeafHasher};
use prost::Message;

use crate::{
    durable::{changed::changed_rows, edit::Edit, flaw::Flaw, table::Table},
    state::State,
    unsaved::Changes,
};

/// What a commit changes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Group {
    #[prost(uint64, tag = "1")]
    pub(crate) head: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) horizon: u64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Row {
    /// The place of the table in [`Table::ALL`].
    #[prost(uint32, tag = "1")]
    table: u32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    /// Unset if the row is gone.
    #[prost(bytes = "vec", optional, tag = "3")]
    body: Option<Vec<u8>>,
}

/// A group with its place in history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'e> {
    pub(crate) epoch: Epoch,
    pub(crate) commit: u64,
    pub(crate) group: &'e [u8],
}

/// How an entry begins.
const MAGIC: u64 = u64::from_le_bytes(*b"nimbuslg");

/// Magic, epoch, commit and length, eight bytes each, then the checksum of all but the magic.
pub(crate) const HEADER: usize = 48;

/// Entries begin at multiples of this, so that they are found again behind damage.
const ALIGNMENT: usize = 8;

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The first entry in `bytes` that is whole and newer than `commit`. Those that are left from before are not newer.
pub(crate) fn next_entry(bytes: &[u8], epoch: Epoch, commit: u64) -> Option<u64> {
    let magic = MAGIC.to_le_bytes();
    let places = (0..bytes.len()).step_by(ALIGNMENT).filter(|at| bytes[*at..].starts_with(&magic));
    let newer = places.filter_map(|at| {
        let is_newer = number(bytes, at + 8)? == epoch.0 && number(bytes, at + 16)? > commit;
        if is_newer { Entry::decode(&bytes[at..]) } else { None }
    });
    newer.map(|(entry, _)| entry.commit).next()
}

// === impl Group ===

impl Group {
    /// What differs between what is on disk and a state.
    pub(crate) fn new(state: &State, changes: &Changes) -> Result<Self, Flaw> {
        let mut rows = Vec::new();
        changed_rows(state, changes, |table, key, body| {
            rows.push(Row { table: table as u32, key: key.to_vec(), body: body.map(<[u8]>::to_vec) });
            Ok(())
        })?;
        Ok(Self { head: state.head.0, horizon: state.horizon.0, rows })
    }

    /// Makes the same changes in the file.
    pub(crate) fn redo(&self, edit: &mut Edit<'_>) -> Result<(), Flaw> {
        self.rows.iter().try_for_each(|row| {
            let table = Table::ALL.get(row.table as usize);
            let table = *table.ok_or_else(|| Flaw::Content(format!("its log: there is no table {}", row.table)))?;
            edit.set(table, &row.key, row.body.as_deref())
        })
    }
}

// === impl Entry ===

impl<'e> Entry<'e> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let len = (HEADER + self.group.len()).next_multiple_of(ALIGNMENT);
        let mut bytes = Vec::with_capacity(len);
        for number in [MAGIC, self.epoch.0, self.commit, self.group.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.checksum().as_bytes());
        bytes.extend(self.group);
        bytes.resize(len, 0);
        bytes
    }

    /// The entry at the beginning of `bytes`, if it is whole, and how many bytes it takes.
    pub(crate) fn decode(bytes: &'e [u8]) -> Option<(Self, usize)> {
        let header = bytes.get(..HEADER)?;
        if number(header, 0)? != MAGIC {
            return None;
        }
        let end = HEADER.checked_add(usize::try_from(number(header, 24)?).ok()?)?;
        let group = bytes.get(HEADER..end)?;
        let entry = Self { epoch: Epoch(number(header, 8)?), commit: number(header, 16)?, group };
        let len = end.next_multiple_of(ALIGNMENT).min(bytes.len());
        (entry.checksum().as_bytes() == &header[32..]).then_some((entry, len))
    }

    fn checksum(&self) -> Digest {
        let mut hasher = LeafHasher::extra();
        hasher.part(&self.epoch.0.to_le_bytes());
        hasher.part(&self.commit.to_le_bytes());
        hasher.part(self.group);
        hasher.finish()
    }
}
