//! What gives a collection its durability: one [redb] file, and the thread that writes to it.
//!
//! A group of writes is appended to a [log](log::Log) beside the file, with one sync. When that is full, the file takes in one
//! commit what has changed; when a file is opened, it takes what the log has that it has not.
//!
//! The file has a table for each sort of fact ([`Table`]), and `meta` with one row: format, epoch, head, horizon, and how
//! many rows each table has with the digest of them all. Every row carries a checksum over its table, its key and its
//! content. So what is read is what one commit wrote, or is refused by name.
//!
//! Views of filters are not written down. They are built again when somebody reads through them, and begin at the head:
//! who resumes through a filter from further back is asked for its digest.
//!
//! **Invariant:** reading changes nothing. A file is read through an [overlay](nimbus_disk::Overlay), which keeps redb's repairs in memory, so
//! that a file that is refused stays as it was found, and is refused the next time, too.

mod changed;
mod committer;
mod edit;
mod error;
mod file;
mod flaw;
mod ledger;
mod load;
mod lock;
mod log;
mod meta;
mod open;
pub(crate) mod row;
pub(crate) mod table;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use committer::Committer;
#[cfg(feature = "sim")]
pub use committer::DrivenDisk;
#[cfg(all(test, feature = "shuttle"))]
pub(crate) use committer::Writing;
pub use error::{Lost, OpenError};
pub(crate) use load::Loaded;
pub(crate) use log::Entry;
pub(crate) use meta::Meta;
pub(crate) use open::open;
#[cfg(feature = "sim")]
pub(crate) use open::open_driven;
