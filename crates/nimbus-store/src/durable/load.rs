//! Reading a file that may be damaged.

use std::{str, sync::Arc};

use bytes::Bytes;
use nimbus_core::{Kind, PublisherId};
use nimbus_disk::Overlay;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, TableError};

use crate::{
    durable::{
        edit::edit,
        file::open_database,
        flaw::Flaw,
        ledger::Ledger,
        log::Logged,
        meta::Meta,
        row::{decode_key, decode_kind, decode_object, decode_slot, decode_tombstone},
        table::{META, META_KEY, Table, display_key, unseal},
    },
    state::{KindState, State},
    writer::Writer,
};

/// What was read from a file and its log.
pub(crate) struct Loaded {
    /// What the file says of itself.
    pub(crate) found: Meta,
    /// What the log has that the file has not.
    pub(crate) logged: Logged,
    /// What is true of both together.
    pub(crate) meta: Meta,
    pub(crate) ledger: Ledger,
    pub(crate) state: State,
}

/// How files of redb begin.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A row that cannot be read, and why.
fn damaged(table: Table, key: &[u8], what: &str) -> Flaw {
    Flaw::Content(format!("{}, {}: {what}", table.name(), display_key(table.name(), key)))
}

fn check_beginning(file: &impl StorageBackend) -> Result<(), Flaw> {
    if file.len()? == 0 {
        return Err(Flaw::Foreign("it is empty".into()));
    }
    let mut beginning = [0; MAGIC.len()];
    let whole = file.len()? >= MAGIC.len() as u64;
    if whole {
        file.read(0, &mut beginning)?;
    }
    if beginning == MAGIC { Ok(()) } else { Err(Flaw::Foreign("it does not begin like one".into())) }
}

fn read_meta(transaction: &ReadTransaction) -> Result<Meta, Flaw> {
    let table = match transaction.open_table(META) {
        Ok(table) => table,
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(error) => return Err(Flaw::Foreign(format!("it is a database of another program: {error}"))),
    };
    match table.get(META_KEY)? {
        Some(row) => Meta::from_row(row.value()),
        None => Err(Flaw::Content("meta: there is no row".into())),
    }
}

/// Reads all rows of a table in their order, verifies and counts them.
fn read_rows(
    transaction: &ReadTransaction,
    table: Table,
    ledger: &mut Ledger,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), String>,
) -> Result<(), Flaw> {
    let rows = match transaction.open_table(table.definition()) {
        Ok(rows) => rows,
        // Nothing was ever written to it; if that is wrong, the count is.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(TableError::Storage(error)) => return Err(error.into()),
        Err(error) => return Err(Flaw::Content(format!("{}: {error}", table.name()))),
    };
    for row in rows.iter()? {
        let (key, value) = row?;
        let (body, checksum) = unseal(table.name(), key.value(), value.value())?;
        ledger.total_mut(table).add(checksum);
        each(key.value(), body).map_err(|what| damaged(table, key.value(), &what))?;
    }
    Ok(())
}

/// Makes the changes of a log in a file.
fn redo(database: &Database, found: &Meta, logged: &Logged) -> Result<(Ledger, Meta), Flaw> {
    let (head, horizon) = logged.last().unwrap_or((found.head(), found.horizon()));
    let commit = found.commit + logged.groups.len() as u64;
    edit(
        database,
        found.ledger()?,
        |edit| logged.groups.iter().try_for_each(|group| group.redo(edit)),
        |ledger| found.advanced(head, horizon, ledger, commit),
    )
}

fn name(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|error| error.to_string())
}

fn publisher(bytes: &[u8]) -> Result<PublisherId, String> {
    PublisherId::new(name(bytes)?).map_err(|error| error.to_string())
}

// === impl Loaded ===

impl Loaded {
    /// Reads a file and what was in the log beside it, which stay as they are.
    ///
    /// All of it is verified, by redb and then here. The result is what the last commit wrote, or the one before if the
    /// last one was never acknowledged.
    pub(crate) fn from_file(
        file: impl StorageBackend,
        log: &[u8],
        assume_complete: bool,
        writer: &mut Writer,
    ) -> Result<Self, Flaw> {
        Flaw::catch(|| {
            check_beginning(&file)?;
            let mut database = open_database(Overlay::new(file)?)?;
            // redb by itself verifies checksums only after a crash.
            if !database.check_integrity()? {
                return Err(Flaw::Content("redb's own records of its pages are wrong".into()));
            }
            let found = read_meta(&database.begin_read()?)?;
            let logged = Logged::from_bytes(log, found.epoch(), found.commit)?;
            if !logged.groups.is_empty() {
                redo(&database, &found, &logged)?;
            }
            Self::read(&database, found, logged, assume_complete, writer)
        })
    }

    /// Makes the changes that are in the log in the file, too, and gives it the format that this version writes.
    pub(crate) fn redo(&self, database: &Database) -> Result<(Ledger, Meta), Flaw> {
        redo(database, &self.found, &self.logged)
    }

    fn read(
        database: &Database,
        found: Meta,
        logged: Logged,
        assume_complete: bool,
        writer: &mut Writer,
    ) -> Result<Self, Flaw> {
        let transaction = database.begin_read()?;
        let meta = read_meta(&transaction)?;
        let mut state = State::new(meta.epoch(), assume_complete);
        (state.head, state.horizon) = (meta.head(), meta.horizon());

        let mut ledger = Ledger::default();
        read_rows(&transaction, Table::Kinds, &mut ledger, |key, body| {
            let kind = Kind::new(name(key)?).map_err(|error| error.to_string())?;
            let of = KindState { publishers: decode_kind(body)?, ..KindState::new() };
            state.kinds.insert(kind, Arc::new(of));
            Ok(())
        })?;
        read_rows(&transaction, Table::Objects, &mut ledger, |key, body| {
            let key = decode_key(key)?;
            let entry = decode_object(&key, body)?;
            if entry.record.revision() > state.head {
                return Err("it is newer than the collection".into());
            }
            let kind = state.kinds.get_mut(key.kind()).ok_or("there is no such kind")?;
            state.objects += 1;
            state.bytes += entry.record.size() as u64;
            let opened = Arc::make_mut(kind).all.restore(&key, entry);
            opened.into_iter().for_each(|selector| state.selectors.add(selector));
            Ok(())
        })?;
        read_rows(&transaction, Table::Tombstones, &mut ledger, |key, body| {
            let slot = decode_slot(key)?;
            let (key, graves) = decode_tombstone(slot, body)?;
            let kind = state.kinds.get_mut(key.kind()).ok_or("there is no such kind")?;
            let view = &mut Arc::make_mut(kind).all;
            let mut lanes = Vec::with_capacity(graves.len());
            for (address, grave) in graves {
                let opened = view.restore_grave(&address, grave);
                opened.into_iter().for_each(|selector| state.selectors.add(selector));
                lanes.push(address);
            }
            writer.restore_burial(key, slot, lanes);
            Ok(())
        })?;
        read_rows(&transaction, Table::Fences, &mut ledger, |key, body| {
            let fence = u64::from_be_bytes(body.try_into().map_err(|_| "it is no fence")?);
            writer.publishers.raise_fence(&publisher(key)?, fence);
            Ok(())
        })?;
        read_rows(&transaction, Table::Synced, &mut ledger, |key, _| {
            state.synced.insert(publisher(key)?);
            Ok(())
        })?;
        read_rows(&transaction, Table::Extras, &mut ledger, |key, body| {
            state.extras.insert(name(key)?.into(), Bytes::copy_from_slice(body));
            Ok(())
        })?;
        let expected = meta.ledger()?;
        for table in Table::ALL {
            let (found, expected) = (ledger.total(table), expected.total(table));
            if found != expected {
                let (name, found, expected) = (table.name(), found.rows, expected.rows);
                let what = format!("{name}: the {found} rows are not the {expected} that were written");
                return Err(Flaw::Content(what));
            }
        }
        Ok(Self { found, logged, meta, ledger, state })
    }
}
