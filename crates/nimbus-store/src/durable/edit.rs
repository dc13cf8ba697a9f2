//! One commit of the file, as it is being made.

use redb::{Database, WriteTransaction};

use crate::durable::{
    flaw::Flaw,
    ledger::Ledger,
    meta::Meta,
    table::{META, META_KEY, Table, claimed, seal},
};

/// Changes rows of a file and counts them, in one transaction.
pub(crate) struct Edit<'t> {
    transaction: &'t WriteTransaction,
    ledger: Ledger,
    /// The table that was changed last: they come one after the other.
    rows: Option<(Table, Rows<'t>)>,
}

/// A table that is open.
type Rows<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

/// Makes one commit, all or nothing. When it returns, it is on disk. Says what there is then.
///
/// After an error nobody knows, so that nothing more may be written.
pub(crate) fn edit(
    database: &Database,
    ledger: Ledger,
    change: impl FnOnce(&mut Edit<'_>) -> Result<(), Flaw>,
    meta: impl FnOnce(&Ledger) -> Meta,
) -> Result<(Ledger, Meta), Flaw> {
    // Durable when it returns: redb's default, which nothing here lowers.
    let transaction = database.begin_write()?;
    let ledger = {
        let mut edit = Edit { transaction: &transaction, ledger, rows: None };
        change(&mut edit)?;
        edit.ledger
    };
    let meta = meta(&ledger);
    transaction.open_table(META)?.insert(META_KEY, &*meta.to_row())?;
    transaction.commit()?;
    Ok((ledger, meta))
}

// === impl Edit ===

impl Edit<'_> {
    /// Writes a row in place of what was there, or drops it.
    pub(crate) fn set(&mut self, table: Table, key: &[u8], body: Option<&[u8]>) -> Result<(), Flaw> {
        if self.rows.as_ref().is_none_or(|(open, _)| *open != table) {
            // A table is open once at a time.
            self.rows = None;
            self.rows = Some((table, self.transaction.open_table(table.definition())?));
        }
        let Some((_, rows)) = &mut self.rows else { return Ok(()) };
        let total = self.ledger.total_mut(table);
        let old = match body {
            None => rows.remove(key)?,
            Some(body) => {
                let (row, checksum) = seal(table.name(), key, body);
                total.add(checksum);
                rows.insert(key, &*row)?
            }
        };
        if let Some(old) = old {
            total.remove(claimed(old.value()));
        }
        Ok(())
    }
}
