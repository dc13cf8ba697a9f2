//! The tables of the file.

use nimbus_core::{Digest, LeafHasher};
use redb::TableDefinition;

use crate::durable::flaw::Flaw;

/// A table whose rows are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Objects, by name, with their places in lanes.
    Objects,
    /// Ends of objects, by slot, with the lanes in which they left tombstones.
    Tombstones,
    /// Kinds, with the publishers that announced a sync of them.
    Kinds,
    /// The newest instances of publishers.
    Fences,
    /// Publishers that have finished a sync.
    Synced,
    /// Small facts that others keep here.
    Extras,
}

/// How redb knows our tables.
pub(crate) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// One row, under [`META_KEY`].
pub(crate) const META: Definition = Definition::new("meta");

/// The only key in [`META`].
pub(crate) const META_KEY: &[u8] = b"meta";

/// A checksum stands before what it is of.
const CHECKSUM: usize = 16;

/// A row as it lies in the file, and its checksum.
pub(crate) fn seal(table: &str, key: &[u8], body: &[u8]) -> (Vec<u8>, Digest) {
    let checksum = checksum(table, key, body);
    ([checksum.as_bytes(), body].concat(), checksum)
}

/// The body of a row, and its checksum, which must be that of this row in this table.
pub(crate) fn unseal<'r>(table: &str, key: &[u8], row: &'r [u8]) -> Result<(&'r [u8], Digest), Flaw> {
    let damaged = |what: &str| Flaw::Content(format!("{table}, {}: {what}", display_key(table, key)));
    let (found, body) = row.split_at_checked(CHECKSUM).ok_or_else(|| damaged("the row is too short"))?;
    let checksum = checksum(table, key, body);
    if found != checksum.as_bytes() {
        return Err(damaged("the row does not match its checksum"));
    }
    Ok((body, checksum))
}

/// The checksum that a row says it has.
pub(crate) fn claimed(row: &[u8]) -> Digest {
    row.get(..CHECKSUM).and_then(Digest::from_slice).unwrap_or_default()
}

/// The key of a row, for humans.
pub(crate) fn display_key(table: &str, key: &[u8]) -> String {
    match <[u8; 12]>::try_from(key) {
        Ok(slot) if table == Table::Tombstones.name() => {
            let revision = u64::from_be_bytes(slot[..8].try_into().expect("eight of twelve bytes"));
            format!("revision {revision}")
        }
        _ => String::from_utf8_lossy(key).replace('\0', "/").escape_default().to_string(),
    }
}

fn checksum(table: &str, key: &[u8], body: &[u8]) -> Digest {
    let mut hasher = LeafHasher::extra();
    hasher.part(table.as_bytes());
    hasher.part(key);
    hasher.part(body);
    hasher.finish()
}

// === impl Table ===

impl Table {
    pub(crate) const ALL: [Self; 6] =
        [Self::Objects, Self::Tombstones, Self::Kinds, Self::Fences, Self::Synced, Self::Extras];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Tombstones => "tombstones",
            Self::Kinds => "kinds",
            Self::Fences => "fences",
            Self::Synced => "synced",
            Self::Extras => "extras",
        }
    }

    pub(crate) const fn definition(self) -> Definition {
        Definition::new(self.name())
    }
}
