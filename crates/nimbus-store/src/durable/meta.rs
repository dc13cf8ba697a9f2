//! What is true of the whole file.

use nimbus_core::{Digest, Epoch, Revision};
use prost::Message;

use crate::{
    durable::{
        flaw::Flaw,
        ledger::Ledger,
        table::{META, META_KEY, Table, seal, unseal},
    },
    state::State,
};

/// The layout that this program writes, and the newest that it reads. Since 2 there may be a log beside the file, of which
/// those who only know 1 would take no notice; the rows are the same.
pub(crate) const FORMAT: u32 = 2;

/// What is true of the whole file. Field 1 and the checksum in front stay as they are in every format.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Meta {
    #[prost(uint32, tag = "1")]
    pub(crate) format: u32,
    #[prost(uint64, tag = "2")]
    epoch: u64,
    #[prost(uint64, tag = "3")]
    head: u64,
    #[prost(uint64, tag = "4")]
    horizon: u64,
    #[prost(message, repeated, tag = "5")]
    totals: Vec<Rows>,
    /// How many commits were made before this one.
    #[prost(uint64, tag = "6")]
    pub(crate) commit: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Rows {
    #[prost(string, tag = "1")]
    table: String,
    #[prost(uint64, tag = "2")]
    rows: u64,
    #[prost(bytes = "vec", tag = "3")]
    digest: Vec<u8>,
}

fn totals(ledger: &Ledger) -> Vec<Rows> {
    let rows = |table: Table| {
        let total = ledger.total(table);
        Rows { table: table.name().into(), rows: total.rows, digest: total.digest.as_bytes().to_vec() }
    };
    Table::ALL.map(rows).into()
}

// === impl Meta ===

impl Meta {
    pub(crate) fn new(state: &State, ledger: &Ledger, commit: u64) -> Self {
        Self {
            format: FORMAT,
            epoch: state.epoch.0,
            head: state.head.0,
            horizon: state.horizon.0,
            totals: totals(ledger),
            commit,
        }
    }

    /// The same history, further on.
    pub(crate) fn advanced(&self, head: Revision, horizon: Revision, ledger: &Ledger, commit: u64) -> Self {
        Self { format: FORMAT, epoch: self.epoch, head: head.0, horizon: horizon.0, totals: totals(ledger), commit }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch)
    }

    pub(crate) fn head(&self) -> Revision {
        Revision(self.head)
    }

    pub(crate) fn horizon(&self) -> Revision {
        Revision(self.horizon)
    }

    /// How many rows there must be, and their digest.
    pub(crate) fn ledger(&self) -> Result<Ledger, Flaw> {
        let mut ledger = Ledger::default();
        for table in Table::ALL {
            let rows = self.totals.iter().find(|rows| rows.table == table.name());
            let (rows, digest) = rows
                .and_then(|rows| Some((rows.rows, Digest::from_slice(&rows.digest)?)))
                .ok_or_else(|| Flaw::Content(format!("meta does not count {}", table.name())))?;
            let total = ledger.total_mut(table);
            (total.rows, total.digest) = (rows, digest);
        }
        Ok(ledger)
    }

    /// The row as it lies in the file.
    pub(crate) fn to_row(&self) -> Vec<u8> {
        seal(redb::TableHandle::name(&META), META_KEY, &self.encode_to_vec()).0
    }

    /// Reads the row, which must have a format that is known.
    pub(crate) fn from_row(row: &[u8]) -> Result<Self, Flaw> {
        let (body, _) = unseal(redb::TableHandle::name(&META), META_KEY, row)?;
        /// Of all formats, this stays.
        #[derive(Clone, PartialEq, Message)]
        struct Format {
            #[prost(uint32, tag = "1")]
            format: u32,
        }
        let damaged = |error: prost::DecodeError| Flaw::Content(format!("meta: {error}"));
        match Format::decode(body).map_err(damaged)?.format {
            1..=FORMAT => Self::decode(body).map_err(damaged),
            found if found > FORMAT => Err(Flaw::Newer { found, supported: FORMAT }),
            found => Err(Flaw::Content(format!("meta: there is no format {found}"))),
        }
    }
}
