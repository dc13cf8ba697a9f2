//! The decoders of a file, for those who feed them with anything. No promise is made of what is here.

use std::sync::Arc;

use nimbus_core::{Epoch, Kind, Revision};
use nimbus_disk::Image;

use crate::{
    durable::{
        Entry, Loaded, Meta,
        row::{
            decode_key, decode_kind, decode_object, decode_slot, decode_tombstone, encode_kind, encode_object,
            encode_tombstone,
        },
        table::{META, META_KEY, seal, unseal},
    },
    filter::NoFields,
    limits::Limits,
    record::Record,
    writer::Writer,
};

/// Which sort of row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// An object, under its name.
    Object,
    /// The end of an object, under its revision.
    Tombstone,
    /// A kind, under its name.
    Kind,
    /// What is true of the whole file; the key says nothing.
    Meta,
}

/// What is in a file.
#[derive(Debug)]
pub struct Contents {
    /// The revision of the last change.
    pub head: Revision,
    /// The number of the last group of writes.
    pub commit: u64,
    /// Every object.
    pub records: Vec<Arc<Record>>,
}

/// Reads a row that has the right checksum, and writes what was read.
///
/// # Errors
/// What is wrong with it.
pub fn rewrite(row: Row, key: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
    match row {
        Row::Object => Ok(encode_object(&decode_object(&decode_key(key)?, body)?)),
        Row::Tombstone => {
            let (_, graves) = decode_tombstone(decode_slot(key)?, body)?;
            Ok(encode_tombstone(&graves).unwrap_or_default())
        }
        Row::Kind => {
            let name = str::from_utf8(key).map_err(|error| error.to_string())?;
            Kind::new(name).map_err(|error| error.to_string())?;
            Ok(encode_kind(&decode_kind(body)?))
        }
        Row::Meta => {
            let table = redb::TableHandle::name(&META);
            let sealed = seal(table, META_KEY, body).0;
            let meta = Meta::from_row(&sealed).map_err(|flaw| flaw.to_string())?;
            meta.ledger().map_err(|flaw| flaw.to_string())?;
            let written = meta.to_row();
            let (body, _) = unseal(table, META_KEY, &written).map_err(|flaw| flaw.to_string())?;
            Ok(body.to_vec())
        }
    }
}

/// Reads a whole file and the log beside it. Panics of redb are among its errors.
///
/// # Errors
/// What is wrong with them.
pub fn load(file: &[u8], log: &[u8]) -> Result<Contents, String> {
    let mut writer = Writer::new(Limits::default(), Arc::new(NoFields), 0);
    let loaded = Loaded::from_file(Image::new(file), log, false, &mut writer).map_err(|flaw| flaw.to_string())?;
    let records = loaded.state.kinds().flat_map(|(_, kind)| kind.all().iter(None).cloned()).collect();
    Ok(Contents { head: loaded.state.head(), commit: loaded.meta.commit, records })
}

/// A group of writes with its checksum, as it lies in a log.
pub fn log_entry(epoch: Epoch, commit: u64, group: &[u8]) -> Vec<u8> {
    Entry { epoch, commit, group }.encode()
}
